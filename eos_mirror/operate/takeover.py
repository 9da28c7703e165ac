"""Takes over copies that another program made: fences it, finds where they end, claims them."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from threading import Event
from typing import Final

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.flow import Flow
from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.driver.cluster_facts import FlowFacts, gather
from eos_mirror.driver.flow_clusters import FlowClusters, open_clusters
from eos_mirror.driver.ledger import note
from eos_mirror.driver.preflight import SHORT, handed_over
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import ConfigError, UnsafeError
from eos_mirror.operate.adopt import pairs_of, switch_of, wait_until_nobody_runs
from eos_mirror.operate.copy_ends import CopiedPartition, CopyEnds
from eos_mirror.operate.origins import Origin
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.model import FlowSettings

LOOK_EVERY_S: Final = 0.5

OTHERS: Final = frozenset(DeliveryMode) - {DeliveryMode.EXACTLY_ONCE}
"""Modes in which our shadow offsets say nothing of what was copied since."""


class Takeover:
    """Takes over one flow. Each step may be interrupted; then all of it is run again."""

    def __init__(
        self,
        settings: FlowSettings,
        origin_of: Callable[[FlowClusters], Origin],
        *,
        match_last: int,
        on_event: EventSink,
        leads: bool = False,
        takes_turns: bool = False,
    ) -> None:
        """
        Args:
            settings: The flow, configured for exactly once.
            origin_of: Returns who made the copies.
            match_last: So many records at the end of a copy are compared at most.
            on_event: Receives events about topics that are created.
            leads: The caller leads the flow, so no other run does.
            takes_turns: The flow and the origin share their positions: nothing is taken over
                unless the origin has stored a later one, and the origin is not stopped.
        """
        self._settings, self._leads, self._takes_turns = settings, leads, takes_turns
        self._clusters: FlowClusters = open_clusters(settings)
        self._origin = origin_of(self._clusters)
        self._topics = TopicSync(settings, self._clusters, on_event=on_event)
        self._copies = CopyEnds(settings, self._origin, match_last=match_last)

    def plan(self) -> list[CopiedPartition]:
        """
        Return where each copy would be continued now. Writes nothing, and fences nothing.

        Raises:
            RestartTask: A cluster did not answer.
            NotAuthorized: A right is missing.
        """
        return self._copies.find(self._left(self._gather()))

    def run(self, *, quiet: timedelta, on_quiet: Callable[[], None]) -> list[CopiedPartition]:
        """
        Take over every copy, all in one transaction; the mode of the flow is recorded last.

        A MirrorMaker 2 that writes exactly once is fenced first. Others cannot be: their copies
        must stand still. A dedicated one stays stopped when its workers are started again.

        Args:
            quiet: For so long. A request of a process that was suspended may arrive later.
            on_quiet: Called before this time begins.

        Returns:
            What was taken over: nothing of what this flow has a position for.

        Raises:
            UnsafeError: The origin or the flow runs, or a copy cannot be continued with certainty.
                Nothing was taken over, and the origin may be started.
        """
        self._origin.refuse_running()
        wait_until_nobody_runs(self._settings, self._clusters, leads=self._leads)
        facts = self._gather()
        try:
            return self._take_over(facts, quiet, on_quiet)
        except UnsafeError:
            if _belongs_to_origin(facts):
                self._origin.start()
            raise

    def _take_over(
        self, facts: FlowFacts, quiet: timedelta, on_quiet: Callable[[], None]
    ) -> list[CopiedPartition]:
        pairs = self._left(facts)
        is_fenced = self._origin.fence() and self._origin.mode is None  # not our own tasks
        if pairs and not is_fenced and not self._has_ended(facts, pairs):
            on_quiet()
            self._wait_for_quiet(list(pairs.values()), quiet)
        ends = self._copies.ends(list(pairs.values()))
        found = self._copies.find(pairs)
        _refuse(self._settings.flow, found)
        if found or facts.noted_mode in OTHERS:
            self._carry(facts, found, ends)
        return found

    def _has_ended(self, facts: FlowFacts, pairs: Mapping[TopicPartition, TopicPartition]) -> bool:
        """Return True if a source connector stopped all its tasks, and no record came since."""
        is_source = facts.noted_mode is DeliveryMode.SOURCE
        if not (is_source and self._clusters.mode.was_stopped()):
            return False
        return all(one.next_offset == one.stored for one in self._copies.find(pairs))

    def _gather(self) -> FlowFacts:
        """Return what is known of the flow; a refused start may have recorded its mode."""
        facts = gather(
            self._clusters,
            self._topics.plan,
            mode=DeliveryMode.EXACTLY_ONCE,
            within=self._settings.admin_timeout,
        )
        self._refuse_other_modes(facts.noted_mode)
        return facts

    def _refuse_other_modes(self, noted: DeliveryMode | None) -> None:
        """Refuse a flow whose copies are not those of the origin."""
        flow, wanted = self._settings.flow, self._origin.mode
        if noted in (wanted, DeliveryMode.EXACTLY_ONCE):
            return
        if noted in SHORT:
            raise UnsafeError(
                f"{flow}: it is {noted.value} already, so its copies are not those of "
                f"{self._origin.name}. Adopt it with --from mode:{SHORT[noted]}."
            )
        if wanted is not None and noted is DeliveryMode.HANDED_OVER:
            raise UnsafeError(handed_over(flow))
        if wanted is not None:
            raise ConfigError(
                f"{flow}: it never ran {wanted.value}: there is nothing to adopt. Just run it."
            )

    def _wait_for_quiet(self, remotes: Sequence[TopicPartition], quiet: timedelta) -> None:
        """
        Watch the copies stand still.

        Raises:
            UnsafeError: One of them grew.
        """
        ends, until_s = self._copies.ends(remotes), time.monotonic() + quiet.total_seconds()
        pause = Event()
        while time.monotonic() < until_s:
            pause.wait(LOOK_EVERY_S)
            self._refuse_growth(ends)

    def _refuse_growth(self, ends: Mapping[TopicPartition, int]) -> None:
        now = self._copies.ends(list(ends))
        grown = next((remote for remote, end in ends.items() if now[remote] != end), None)
        if grown is not None:
            raise UnsafeError(
                f"{self._settings.flow}: {grown} ended at {ends[grown]}, and now at {now[grown]}: "
                f"{self._origin.name} or another client writes it. Stop it, then adopt."
            )

    def _carry(
        self,
        facts: FlowFacts,
        found: Sequence[CopiedPartition],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """Note the positions in the ledger, then commit them: a kill in between leaves a trace."""
        self._topics.trust(route.source_topic for route in facts.plan.routes)
        self._topics.begin()
        positions = {one.source: one.next_offset for one in found}
        if facts.noted_mode in OTHERS or self._takes_turns:
            positions = {**self._untouched(facts), **positions}
        details = {
            "mode": DeliveryMode.EXACTLY_ONCE.value,
            "partitions": len(found),
            "from": self._origin.code,
            "positions": {str(p): at for p, at in positions.items()},
        }
        note(self._settings, self._clusters.target_topics, Kind.MODE, details)
        switch = switch_of(self._settings, self._clusters, facts)
        if not self._takes_turns:
            self._origin.stop()
        self._origin.refuse_running()  # a worker that was started meanwhile, and its tasks
        self._origin.fence()
        self._refuse_growth(ends)
        placed = {p: Position(at) for p, at in positions.items() if at is not None}
        switch.carry(placed, ends=ends)
        self._clusters.mode.replace(DeliveryMode.EXACTLY_ONCE)

    def _left(self, facts: FlowFacts) -> dict[TopicPartition, TopicPartition]:
        """Return the partitions whose position is not ours, by source partition."""
        pairs = pairs_of(facts)
        if facts.noted_mode in OTHERS:
            return pairs
        if self._takes_turns:
            return pairs if self._has_later(pairs) else {}
        ours = {one.remote for one in facts.partitions if one.has_shadow}
        return {source: remote for source, remote in pairs.items() if remote not in ours}

    def _has_later(self, pairs: Mapping[TopicPartition, TopicPartition]) -> bool:
        """Return whether the origin has stored a position after ours, or where we have none."""
        stored = self._origin.positions(list(pairs))
        ours = self._clusters.shadow_offsets.read(list(pairs.values()))
        return any(
            pairs[source] not in ours or ours[pairs[source]].position.next_offset < at
            for source, at in stored.items()
        )

    def _untouched(self, facts: FlowFacts) -> dict[TopicPartition, int]:
        """Return our positions of what was handed over; found ones replace them."""
        pairs = pairs_of(facts)
        shadows = self._clusters.shadow_offsets.read(list(pairs.values()))
        return {
            source: shadows[remote].position.next_offset
            for source, remote in pairs.items()
            if remote in shadows
        }


def _belongs_to_origin(facts: FlowFacts) -> bool:
    """Return whether another program continues every copy, as long as nothing is taken over."""
    return facts.noted_mode in OTHERS or not any(one.has_shadow for one in facts.partitions)


def _refuse(flow: Flow, found: Sequence[CopiedPartition]) -> None:
    refused = [one for one in found if one.refusal]
    if refused:
        lines = [f"{flow} {one.source}: {one.refusal}" for one in refused]
        raise UnsafeError("\n".join(lines))
