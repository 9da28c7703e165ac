"""
The entry of a flow's group task: checkpoints, and the offsets of groups on the target.

A process of its own, because an admin client that asks a coordinator that moves may end it.
"""

import math
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from eos_mirror.core.checkpoints import Pair, exact, forward, is_news, sparse
from eos_mirror.core.filters import NameFilter, TopicFilter
from eos_mirror.core.flow import INTERNAL_PREFIX, Flow
from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.plugins import make
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.errors import FatalError, MirrorError
from eos_mirror.kafka.checkpoints import Checkpoints, KafkaCheckpoints
from eos_mirror.kafka.group_offsets import GroupOffsets
from eos_mirror.kafka.offset_maps import FollowedMaps
from eos_mirror.kafka.offset_syncs import FollowedSyncs
from eos_mirror.ports import GroupOffset, TaskContext

TURN_S = 0.25
BUDGET = timedelta(minutes=5)
"""For one round; after that the process ends, and the next has new clients."""

Offsets = Mapping[str, Mapping[TopicPartition, GroupOffset]]
"""By group and partition of the source."""

Translate = Callable[[int], Pair | None]
Reader = Callable[
    [Mapping[TopicPartition, TopicPartition], Mapping[TopicPartition, int]],
    Mapping[TopicPartition, Translate],
]
"""Takes remote by source partitions, and the smallest offset of each that is asked for; returns
what is known of them, by remote partition."""

_kept: list[object] = []
"""Clients of a task that ended: their destructors can block, and the process ends without them."""


def follow_groups(config: Mapping[str, Any], context: TaskContext) -> None:
    """
    Follow the groups of the source until told to stop; a `ports.TaskEntry`.

    Args:
        config: As `control/groups.py` wrote it.
    """
    task = GroupTask(config, context)
    _kept.append(task)
    while not context.stop.wait(TURN_S):
        with context.watch("a round over the groups", BUDGET):
            task.turn(context.orders())
        context.report(task.counts)


class GroupTask:
    """
    Of one flow.

    Attributes:
        counts: Since the start: `rounds`, `checkpoints` written, groups `moved` on the target,
            `requests` sent; and as of the last round, `groups` with offsets.
    """

    def __init__(self, config: Mapping[str, Any], context: TaskContext) -> None:
        """
        Args:
            config: As `control/groups.py` wrote it.
        """
        clients = config["clients"]
        self._context = context
        self._wanted: Mapping[str, Any] = {}
        self._filter: NameFilter = TopicFilter([], [])
        self._source = GroupOffsets(clients["source_admin"], source=True)
        self._target = GroupOffsets(clients["target_admin"], source=False)
        self._read = _reader(config)
        self._topic = KafkaCheckpoints(
            clients["target_admin"],
            clients["claims_producer"],
            config["topic"],
            replication_factor=config["replication_factor"],
        )
        self._look = _Clock(config["refresh_s"])
        self._emit = _Clock(config["emit_s"])
        self._sync = None if config["sync_s"] is None else _Clock(config["sync_s"])
        self._known: Checkpoints | None = None
        self._groups: set[str] = set()
        self._is_told = False
        self.counts = dict.fromkeys(("rounds", "checkpoints", "moved", "requests", "groups"), 0)

    def turn(self, orders: Mapping[str, Any]) -> None:
        """
        What is due.

        Args:
            orders: `topics`: remote by source topic; `groups`: which ones are wanted, as
                `control/groups.py` says it. Empty until the driver has said anything.

        Raises:
            FatalError: By class.
        """
        routes: Mapping[str, str] = orders.get("topics", {})
        if routes and orders["groups"] != self._wanted:
            self._want(orders["groups"])
        emits = self._emit.is_due()
        syncs = self._sync is not None and self._sync.is_due()
        if not routes or not (emits or syncs):
            return
        try:
            self._round(routes, syncs=syncs)
        except FatalError:
            raise
        except MirrorError as exc:
            if not self._is_told:
                self._is_told = True
                self._context.event("groups.failed", {"reason": f"{type(exc).__name__}: {exc}"})
        else:
            self._is_told = False

    def _want(self, wanted: Mapping[str, Any]) -> None:
        """Other groups than before; they are looked for at once."""
        self._wanted = wanted
        self._filter = (
            TopicFilter(wanted["include"], wanted["exclude"])
            if wanted["filter"] is None
            else make(wanted["filter"], wanted["filter_config"], ["matches"])
        )
        self._look.hurry()

    def _round(self, routes: Mapping[str, str], *, syncs: bool) -> None:
        began = time.monotonic()
        if self._known is None:
            self._known = self._topic.load()
            if self._topic.unreadable:
                self._context.event("checkpoints.unreadable", {"records": self._topic.unreadable})
        checkpoints = self._translate(self._offsets(routes), routes)
        news = [
            checkpoint
            for checkpoint in checkpoints
            if is_news(checkpoint, self._known.get((checkpoint.group, checkpoint.partition)))
        ]
        self._topic.write(news)
        self._known.update({(one.group, one.partition): one for one in news})
        moved = self._move() if syncs else set()
        requests = self._source.requests + self._target.requests
        self._context.event(
            "groups.followed",
            {
                "groups": len(self._groups),
                "checkpoints": len(news),
                "moved": len(moved),
                "requests": requests - self.counts["requests"],
                "took_s": round(time.monotonic() - began, 3),
            },
        )
        self.counts["rounds"] += 1
        self.counts["checkpoints"] += len(news)
        self.counts["moved"] += len(moved)
        self.counts["requests"] = requests
        self.counts["groups"] = len(self._groups)

    def _offsets(self, routes: Mapping[str, str]) -> Offsets:
        """What the groups have committed on mirrored topics."""
        if looks := self._look.is_due():
            self._groups = {
                name
                for name in self._source.names()
                if self._filter.matches(name) and not name.startswith(INTERNAL_PREFIX)
            }
        found = {
            group: {p: offset for p, offset in offsets.items() if p.topic in routes}
            for group, offsets in self._source.read(self._groups).items()
        }
        if looks:
            self._groups = {group for group, offsets in found.items() if offsets}
        return found

    def _translate(self, found: Offsets, routes: Mapping[str, str]) -> list[Checkpoint]:
        remotes = {
            partition: TopicPartition(routes[partition.topic], partition.partition)
            for offsets in found.values()
            for partition in offsets
        }
        lowest: dict[TopicPartition, int] = {}
        for offsets in found.values():
            for partition, offset in offsets.items():
                at = offset.position.next_offset
                lowest[partition] = min(at, lowest.get(partition, at))
        known = self._read(remotes, lowest)
        checkpoints = []
        for group, offsets in found.items():
            for partition, offset in offsets.items():
                remote = remotes[partition]
                translate = known.get(remote)
                pair = None if translate is None else translate(offset.position.next_offset)
                if pair is not None:
                    one = Checkpoint(
                        group=group,
                        partition=remote,
                        upstream=pair.upstream,
                        downstream=pair.downstream,
                        metadata=offset.metadata,
                    )
                    checkpoints.append(one)
        return checkpoints

    def _move(self) -> set[str]:
        """Move the groups that nobody is in on the target; those that were moved."""
        by_group: dict[str, dict[TopicPartition, Checkpoint]] = {}
        for (group, partition), checkpoint in (self._known or {}).items():
            if group in self._groups:
                by_group.setdefault(group, {})[partition] = checkpoint
        free = self._target.without_members(by_group)
        there = self._target.read(free)
        wanted = {}
        for group in free:
            offsets = {p: o.position.next_offset for p, o in there.get(group, {}).items()}
            wanted[group] = {
                partition: GroupOffset(
                    position=Position(checkpoint.downstream, None), metadata=checkpoint.metadata
                )
                for partition, checkpoint in forward(by_group[group], offsets).items()
            }
        return self._target.write({group: moves for group, moves in wanted.items() if moves})


def _reader(config: Mapping[str, Any]) -> Reader:
    """Exactly once has a map, at least once has syncs."""
    flow, target = Flow(*config["flow"]), config["clients"]["target_admin"]
    if config["exactly_once"]:
        maps = FollowedMaps(flow, target)
        return lambda remotes, lowest: {
            remote: partial(exact, offsets)
            for remote, offsets in maps.read(
                {remotes[partition]: offset for partition, offset in lowest.items()}
            ).items()
        }
    syncs = FollowedSyncs(target, config["syncs_topic"], group=flow.shadow_group)
    return lambda remotes, _lowest: {
        remote: partial(sparse, store, end) for remote, (store, end) in syncs.read(remotes).items()
    }


class _Clock:
    """At once, and every so many seconds; once, if that is None."""

    def __init__(self, every_s: float | None, now: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._now = now
        self._next = now()

    def hurry(self) -> None:
        self._next = self._now()

    def is_due(self) -> bool:
        if self._now() < self._next:
            return False
        self._next = math.inf if self._every_s is None else self._now() + self._every_s
        return True
