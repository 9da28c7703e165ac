"""
The entry of a flow's checkpoint task: it emits checkpoints and syncs group offsets.

It has a process of its own: an admin client may crash it when a coordinator moves.
"""

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from eos_mirror.core.checkpoints import differs, is_more_recent, joined
from eos_mirror.core.filters import NameFilter, TopicFilter
from eos_mirror.core.flow import INTERNAL_PREFIX
from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.messages import (
    CheckpointConfig,
    CheckpointOrders,
    CheckpointReport,
    GroupSelection,
)
from eos_mirror.core.plugins import make
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.reported import Reported
from eos_mirror.core.retries import Retries
from eos_mirror.core.side import Side
from eos_mirror.core.spread import Spread
from eos_mirror.errors import (
    FatalError,
    MirrorError,
    NotAuthorized,
    SourceUnavailable,
    TargetUnavailable,
    fields_of,
)
from eos_mirror.kafka.checkpoints import Checkpoints, KafkaCheckpoints
from eos_mirror.kafka.consumer_offsets_reader import GroupCommits
from eos_mirror.kafka.group_offsets import NAMELESS, GroupOffsets, Refusal
from eos_mirror.kafka.reconnecting import drop_refused_clients
from eos_mirror.ports import TaskChannel
from eos_mirror.tasks.context import TypedContext
from eos_mirror.tasks.group_offset_sync import GroupOffsetSync
from eos_mirror.tasks.messages import decode
from eos_mirror.tasks.offset_translation import Offsets, OffsetTranslation

TURN_S = 0.25
BUDGET = timedelta(minutes=5)
"""Time limit for one round. After that the process exits, and the next one has new clients."""

BETWEEN_S = 1.0
SHARE = 0.1
"""Largest share of the time for rounds over groups that just committed."""

UNANSWERED = 3
"""Consecutive unanswered rounds after which the process exits: see `kafka/reconnecting.py`."""

TRIES = 10
"""How often a group that just committed is checked while it is ahead of the mirror."""

_kept: list[object] = []
"""Clients of an ended task. Their destructors can block, so the process exits without them."""


Context = TypedContext[CheckpointOrders, CheckpointReport]


def emit_checkpoints(message: Mapping[str, Any], channel: TaskChannel) -> None:
    """
    Emit checkpoints until the driver sends STOP; a `ports.TaskEntry`.

    Args:
        message: A `core.messages.CheckpointConfig` in its JSON form.
    """
    context = Context(channel, CheckpointOrders)
    task = CheckpointTask(decode(CheckpointConfig, message), context)
    _kept.append(task)
    refusals = _Clock(BETWEEN_S)
    while not context.stop.wait(TURN_S):
        if refusals.is_due():
            drop_refused_clients()
        with context.watch("a round over the groups", BUDGET):
            task.turn(context.orders())
        task.report()


class CheckpointTask:
    """Emits the checkpoints of one flow."""

    def __init__(self, config: CheckpointConfig, context: Context) -> None:
        clients = config.clients
        self._context = context
        self._selection: GroupSelection | None = None
        self._filter: NameFilter = TopicFilter([], [])
        self._source = GroupOffsets(clients.source_admin, side=Side.SOURCE, before_wait=self.report)
        self._sync_offsets = GroupOffsetSync(clients.target_admin, before_wait=self.report)
        self._translation = OffsetTranslation(
            config.flow,
            clients.source_admin,
            clients.target_admin,
            syncs_topic=config.syncs_topic,
        )
        self._topic = KafkaCheckpoints(
            clients.target_admin,
            clients.claims_producer,
            config.topic,
            group=config.flow.shadow_group,
            replication_factor=config.replication_factor,
        )
        self._look = _Clock(config.refresh_s)
        self._emit = _Clock(config.emit_s)
        self._sync = None if config.sync_s is None else _Clock(config.sync_s)
        self._commits = (
            GroupCommits(clients.source_admin, group=config.flow.source_group)
            if config.on_commit
            else None
        )
        self._committed: dict[str, int] = {}
        self._next_at_once = 0.0
        self._known: Checkpoints | None = None
        self._is_exact = config.syncs_topic is None
        self._current: set[tuple[str, TopicPartition]] = set()  # translated by this process
        self._retries, self._untranslated = Retries(), Retries()
        self._groups: set[str] = set()
        self._before: dict[str, set[TopicPartition]] = {}
        self._reported = Reported()
        self._unanswered = 0
        self._done = _Done()

    def report(self, done: CheckpointReport | None = None) -> None:
        """
        Send a report, which shows the driver that the task is alive.

        A round takes as long as its slowest coordinators: longer than a loop may be silent.
        """
        self._context.report(done or CheckpointReport())

    def turn(self, orders: CheckpointOrders) -> None:
        """
        Do what is due.

        Raises:
            FatalError: The process has to exit; another one would not help.
            SourceUnavailable, TargetUnavailable: The process has to exit, to get new clients.
        """
        routes = orders.topics
        if orders.groups is not None and orders.groups != self._selection:
            self._select(orders.groups)
        emits = self._emit.is_due()
        syncs = self._sync is not None and self._sync.is_due()
        if not routes:
            return
        try:
            if self._commits is not None:
                self._listen(self._commits, routes)
            if emits or syncs:
                self._round(routes, syncs=syncs)
            elif self._committed and time.monotonic() >= self._next_at_once:
                self._round(routes, syncs=True, only=set(self._committed))
        except NotAuthorized as exc:
            self._bear(exc)  # as soon as the right is granted, a round succeeds
        except FatalError:
            raise
        except MirrorError as exc:
            self._bear(exc)
        else:
            self._recovered()

    def _recovered(self) -> None:
        if self._reported.over():
            self._context.event("failure.over", {"what": "checkpoints.failed"})

    def _bear(self, exc: MirrorError) -> None:
        """Log the error: the next round tries again. Raise it after UNANSWERED outages in a row."""
        is_outage = isinstance(exc, (SourceUnavailable, TargetUnavailable))
        self._unanswered = self._unanswered + 1 if is_outage else 0
        if self._unanswered == UNANSWERED:
            raise exc
        if self._reported.is_new():
            self._context.event("checkpoints.failed", fields_of(exc))

    def _select(self, selection: GroupSelection) -> None:
        """Apply a new selection of groups, and list the groups immediately."""
        self._selection = selection
        self._filter = (
            TopicFilter(selection.include, selection.exclude)
            if selection.filter_class is None
            else make(selection.filter_class, selection.filter_config, ["matches"])
        )
        self._look.hurry()

    def _listen(self, commits: GroupCommits, routes: Mapping[str, str]) -> None:
        """Note the groups that commit on mirrored topics. Log once if commits are unreadable."""
        for group, topic in commits.recent():
            is_new = self._look.repeats and self._is_followed(group)
            if topic in routes and (group in self._groups or is_new):
                self._groups.add(group)
                self._committed[group] = TRIES
                self._retries.accepted([group])  # its coordinator is available
        if commits.unavailable_reason:
            self._context.event("group-commits.unreadable", {"reason": commits.unavailable_reason})
            self._commits = None

    def _is_followed(self, group: str) -> bool:
        is_ours = group.startswith(INTERNAL_PREFIX)
        return bool(group) and not is_ours and self._filter.matches(group)

    def _skip(self, group: str, refusal: Refusal) -> None:
        """Skip the group now and ask for it again later; the other groups are synced."""
        reason, may_pass = refusal
        if self._retries.refused(group, reason, now_s=time.monotonic(), may_pass=may_pass):
            self._context.event("group.skipped", {"group": group, "reason": reason})

    def _round(
        self, routes: Mapping[str, str], *, syncs: bool, only: Collection[str] | None = None
    ) -> None:
        """Run one round over all groups, or over `only` those that just committed."""
        began = time.monotonic()
        if self._known is None:
            self._known = self._topic.load()
            if self._topic.unreadable:
                self._context.event("checkpoints.unreadable", {"records": self._topic.unreadable})
        found = self._offsets(routes, only)
        checkpoints, ahead, untranslated, before = self._translation.translate(found, routes)
        self._tell_untranslated(untranslated, all_groups=only is None)
        self._tell_before(found, before, all_groups=only is None)
        replaces = differs if self._is_exact else is_more_recent
        news = [
            checkpoint
            for checkpoint in checkpoints
            if replaces(checkpoint, self._known.get((checkpoint.group, checkpoint.partition)))
        ]
        self._current.update((one.group, one.partition) for one in checkpoints)
        self._topic.write(news)
        self._measure(len(news), int((time.monotonic() - began) * 1_000))
        self._known.update({(one.group, one.partition): one for one in news})
        moved = self._move(self._groups if only is None else only) if syncs else set()
        if syncs:
            left = {group: tries - 1 for group, tries in self._committed.items() if group in ahead}
            self._committed = {group: tries for group, tries in left.items() if tries}
        took_s = time.monotonic() - began
        self._next_at_once = time.monotonic() + max(BETWEEN_S, took_s / SHARE)
        self._unanswered = 0
        self._done.checkpoints += len(news)
        self._done.moved += len(moved)
        if only is None:
            self._tell_round(took_s)

    def _tell_untranslated(
        self, reasons: Mapping[TopicPartition, str], *, all_groups: bool
    ) -> None:
        """Log a partition once, and only if the next round fails too: a map may be mid-spill."""
        for remote, reason in reasons.items():
            is_new = self._untranslated.refused(
                str(remote), reason, now_s=time.monotonic(), may_pass=True
            )
            if is_new:
                self._context.event(
                    "groups.untranslated", {"partition": str(remote), "reason": reason}
                )
        if all_groups:
            self._untranslated.keep({str(remote) for remote in reasons})

    def _tell_before(
        self,
        found: Offsets,
        before: Mapping[str, Mapping[TopicPartition, str]],
        *,
        all_groups: bool,
    ) -> None:
        """Log a group before the beginning of a copy once, and again if it is so on more copies."""
        for group in found:
            reasons = before.get(group, {})
            if reasons.keys() - self._before.get(group, set()):
                reason = joined([reasons[partition] for partition in sorted(reasons)])
                self._context.event("group.waiting", {"group": group, "reason": reason})
            self._before[group] = set(reasons)
        if all_groups:
            self._before = {group: some for group, some in self._before.items() if group in found}

    def _measure(self, checkpoints: int, took_ms: int) -> None:
        """Add the latency from the offset request to the acknowledged checkpoints."""
        if checkpoints:
            spread = Spread.of([took_ms] * checkpoints)
            before = self._done.latency
            self._done.latency = before.then(spread) if before else spread

    def _tell_round(self, took_s: float) -> None:
        """Log and report the round, with the work for groups that committed since the last one."""
        done = self._done
        sent = self._source.requests + self._sync_offsets.requests
        self._done = _Done(requests_before=sent)
        self._context.event(
            "checkpoints.emitted",
            {
                "groups": len(self._groups),
                "checkpoints": done.checkpoints,
                "moved": done.moved,
                "requests": sent - done.requests_before,
                "took_s": round(took_s, 3),
            },
        )
        self.report(
            CheckpointReport(
                groups=len(self._groups),
                checkpoints=done.checkpoints,
                moved=done.moved,
                latency=done.latency,
            )
        )

    def _offsets(self, routes: Mapping[str, str], only: Collection[str] | None) -> Offsets:
        """Return the commits on mirrored topics, of the groups that can be asked now."""
        if looks := only is None and self._look.is_due():
            self._find_groups()
        asked = set(self._groups if only is None else only)
        due = asked - self._retries.waiting(asked, now_s=time.monotonic()).keys()
        found = {
            group: {p: offset for p, offset in offsets.items() if p.topic in routes}
            for group, offsets in self._source.read(due).items()
        }
        skipped = due & self._source.refused.keys()
        self._retries.accepted(due - skipped)
        for group in sorted(skipped):
            self._skip(group, self._source.refused[group])
        if looks:
            skipped = self._groups & self._retries.names
            self._groups = {group for group, offsets in found.items() if offsets} | skipped
        return found

    def _find_groups(self) -> None:
        """
        List the groups of the source.

        A group that is no longer listed is asked for its offsets once more: it may be deleted, or
        its coordinator may be unavailable.
        """
        names = self._source.names()
        if "" in names and self._filter.matches(""):
            self._skip("", Refusal(NAMELESS, may_pass=False))
        self._groups = {name for name in names | self._groups if self._is_followed(name)}
        if self._source.unlisted:
            self._look.hurry()
        self._retries.keep(self._groups | {""})

    def _move(self, only: Collection[str]) -> set[str]:
        """
        Sync group offsets, and return the synced groups. Log a changed reason to wait.

        An exact checkpoint that this process has only read may be of an earlier copy of the topic.
        """
        wanted: dict[str, dict[TopicPartition, Checkpoint]] = {}
        for (group, partition), checkpoint in (self._known or {}).items():
            is_current = not self._is_exact or (group, partition) in self._current
            if group in only and is_current:
                wanted.setdefault(group, {})[partition] = checkpoint
        before = dict(self._sync_offsets.waiting)
        moved = self._sync_offsets.move(wanted)
        for group, reason in self._sync_offsets.waiting.items():
            if before.get(group) != reason:
                self._context.event("group.waiting", {"group": group, "reason": reason})
        return moved


@dataclass(slots=True, kw_only=True)
class _Done:
    """The work since the last round over all groups."""

    checkpoints: int = 0
    moved: int = 0
    latency: Spread | None = None
    requests_before: int = 0


class _Clock:
    """Is due immediately, then every `every_s` seconds; only once if that is None."""

    def __init__(self, every_s: float | None, now: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._now = now
        self._next = now()

    @property
    def repeats(self) -> bool:
        return self._every_s is not None

    def hurry(self) -> None:
        self._next = self._now()

    def is_due(self) -> bool:
        if self._now() < self._next:
            return False
        self._next = math.inf if self._every_s is None else self._now() + self._every_s
        return True
