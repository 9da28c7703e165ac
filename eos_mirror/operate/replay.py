"""Appends quarantined records to their copies, once the target accepts them."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from time import time_ns
from typing import Final

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.handlers import FAILED
from eos_mirror.core.ledger import Kind
from eos_mirror.core.metadata import decode
from eos_mirror.core.plural import counted
from eos_mirror.core.records import DecodedRun, TopicPartition
from eos_mirror.core.topic_limits import SenderLimits, TopicLimits, first_refused
from eos_mirror.driver.cluster_facts import FlowFacts, gather
from eos_mirror.driver.flow_clusters import open_clusters
from eos_mirror.driver.ledger import note
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import ConfigError, RefusedByTarget, UnsafeError
from eos_mirror.operate.adopt import pairs_of, switch_of
from eos_mirror.operate.carry_positions import FencedPositions, Pairs
from eos_mirror.operate.quarantine import Held, quarantined
from eos_mirror.operate.stopped_topic import start_left_stopped, stopped_topic
from eos_mirror.ports import Delivered
from eos_mirror.settings.clients import mode_of, sender_limits
from eos_mirror.settings.model import FlowSettings

PORTION: Final = 500
"""Most records in one transaction."""

COMMAND: Final = "quarantine replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """
    What can be done with a quarantined record.

    Attributes:
        refusal: Why it cannot be replayed now; empty if it can.
    """

    held: Held
    refusal: str


class Replayer:
    """Replays the records of one flow. It may be interrupted, and run again."""

    def __init__(self, settings: FlowSettings, is_wanted: Callable[[str], bool]) -> None:
        """
        Args:
            is_wanted: Decides by the name of a source topic.
        """
        self._settings, self._is_wanted = settings, is_wanted
        self._clusters = open_clusters(settings)
        self._topics = TopicSync(settings, self._clusters, on_event=lambda *_: None)

    def plan(self) -> list[Verdict]:
        """
        Return what would be done with each record that was not replayed yet. Writes nothing.

        Raises:
            ConfigError: There is no quarantine, or the flow mirrors at least once.
            RestartTask: A cluster did not answer.
        """
        pairs = self._pairs()
        limits = self._limits(pairs)
        return [self._judged(held, pairs, limits) for held in self._waiting(self._is_wanted)]

    def run(self, *, reason: str) -> list[Verdict]:
        """
        Append the records that the target accepts now. The topics are stopped meanwhile.

        Returns:
            All records that were considered, by topic; those without a refusal are appended.

        Raises:
            UnsafeError: The run of the flow has not stopped a topic in time, or the target refuses
                a record for a reason that cannot be foreseen. Earlier topics are done.
            Others: As `plan`.
        """
        done: list[Verdict] = []
        for topic in sorted({one.held.record.source.topic for one in self.plan()}):
            with stopped_topic(self._settings, self._clusters, topic, COMMAND, reason):
                done += self._replay(topic, reason)
        return done

    def finish(self) -> list[str]:
        """
        Finish a command that was interrupted after it had replayed everything.

        Returns:
            The topics that it had left stopped.

        Errors: as `run`.
        """
        topics = {held.record.source.topic for held in quarantined(self._settings, self._is_wanted)}
        return [
            topic
            for topic in sorted(topics)
            if start_left_stopped(self._settings, self._clusters, topic, COMMAND)
        ]

    def _replay(self, topic: str, reason: str) -> list[Verdict]:
        facts = self._facts()
        pairs = {one: remote for one, remote in pairs_of(facts).items() if one.topic == topic}
        if not pairs:
            return []
        limits = self._limits(pairs)
        switch = switch_of(self._settings, self._clusters, facts)
        with replace(switch, pairs=pairs).fenced() as fenced:
            # only now: another command may have replayed some of them
            verdicts = [
                self._of_this_topic(self._judged(held, pairs, limits), pairs, fenced)
                for held in self._waiting(lambda name: name == topic)
            ]
            accepted = iter([one.held for one in verdicts if not one.refusal])
            while portion := list(islice(accepted, PORTION)):
                self._append(portion, pairs, fenced, reason)
        return verdicts

    def _append(
        self, portion: Sequence[Held], pairs: Pairs, fenced: FencedPositions, reason: str
    ) -> None:
        by_source: defaultdict[TopicPartition, list[Held]] = defaultdict(list)
        for held in portion:
            by_source[held.record.source].append(held)
        runs = {pairs[source]: [_run(some)] for source, some in by_source.items()}
        beside = {self._settings.quarantine_topic: [held.place.replayed() for held in portion]}
        try:
            fenced.append(runs, beside, partial(self._note, by_source, pairs, reason))
        except RefusedByTarget as exc:
            raise UnsafeError(
                f"{self._settings.flow}: {exc}; {counted(len(portion), 'record')} are not replayed"
            ) from exc

    def _note(
        self,
        by_source: Mapping[TopicPartition, Sequence[Held]],
        pairs: Pairs,
        reason: str,
        delivered: Mapping[TopicPartition, Delivered],
    ) -> None:
        """Write ledger entries before the commit, so that no replayed record lacks one."""
        for source, some in by_source.items():
            last = delivered[pairs[source]].last or 0
            details = {
                "partition": str(source),
                "topic_id": some[0].record.topic_id,
                "remote": str(pairs[source]),
                "from": last + 1 - len(some),
                "to": last + 1,
                "records": len(some),
                "reason": reason or "replayed by an operator",
            }
            note(self._settings, self._clusters.target_topics, Kind.REPLAY, details)

    def _waiting(self, is_wanted: Callable[[str], bool]) -> Iterator[Held]:
        return (held for held in quarantined(self._settings, is_wanted) if not held.is_replayed)

    def _facts(self) -> FlowFacts:
        mode = mode_of(self._settings)
        if mode is not DeliveryMode.EXACTLY_ONCE:
            raise ConfigError(
                f"{self._settings.flow}: at least once, records can be appended to a copy with any "
                f"producer: nothing has to be replayed"
            )
        within = self._settings.admin_timeout
        return gather(self._clusters, self._topics.plan, mode=mode, within=within)

    def _pairs(self) -> Pairs:
        return pairs_of(self._facts())

    def _limits(self, pairs: Pairs) -> Mapping[str, TopicLimits]:
        return self._clusters.target.limits({remote.topic for remote in pairs.values()})

    def _judged(self, held: Held, pairs: Pairs, limits: Mapping[str, TopicLimits]) -> Verdict:
        remote = pairs.get(held.record.source)
        if remote is None:
            return Verdict(held=held, refusal="the flow does not mirror its partition now")
        return Verdict(
            held=held,
            refusal=_refusal(held, remote, limits[remote.topic], sender_limits(self._settings)),
        )

    def _of_this_topic(self, verdict: Verdict, pairs: Pairs, fenced: FencedPositions) -> Verdict:
        """Refuse a record of an earlier source topic with the same name: it is not of this copy."""
        if verdict.refusal:
            return verdict
        record = verdict.held.record
        shadow = fenced.shadows.get(pairs[record.source])
        if shadow is None:
            return replace(verdict, refusal="its partition has no position")
        if decode(shadow.metadata).topic_id != record.topic_id:
            return replace(verdict, refusal="it is of an earlier topic with the same name")
        return verdict


def _refusal(held: Held, remote: TopicPartition, limits: TopicLimits, sender: SenderLimits) -> str:
    if held.record.code == FAILED:
        return "its message handler failed; the copies that it makes are not known"
    now_ms = time_ns() // 1_000_000
    refused = first_refused(_run([held]), remote.topic, limits, sender, now_ms=now_ms)
    return "" if refused is None else f"{refused.code}: {refused.reason}"


def _run(some: Sequence[Held]) -> DecodedRun:
    records = [held.record for held in some]
    return DecodedRun(
        partition=records[0].source,
        offsets=[one.offset for one in records],
        timestamps=[one.timestamp for one in records],
        keys=[one.key for one in records],
        values=[one.value for one in records],
        headers=[one.headers for one in records],
        leader_epoch=None,
        size_bytes=sum(len(one.value or b"") for one in records),
    )
