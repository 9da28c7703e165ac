"""
Appends quarantined records to their copies, once the target accepts them.

A plan has the places of all records. Their contents are read for one portion after the other.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Final

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.cluster_facts import FlowFacts
from eos_mirror.driver.flow_clusters import open_clusters
from eos_mirror.driver.ledger import create_ledger
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import (
    ConfigError,
    RangeUnreadable,
    RefusedByTarget,
    RetriableError,
    UnsafeError,
)
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.ledger import KafkaLedger
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.retry import retrying
from eos_mirror.operate.adopt import pairs_of, switch_of
from eos_mirror.operate.carry_positions import Pairs
from eos_mirror.operate.fenced_positions import FencedPositions
from eos_mirror.operate.noted_mode import facts_of_this_mode
from eos_mirror.operate.quarantine import Held, partitions_of, quarantined, quarantined_at
from eos_mirror.operate.replay_plan import Key, ReplayPlan, Verdict, key_of, run_of
from eos_mirror.operate.stopped_topic import start_left_stopped, stopped_topic
from eos_mirror.ports import Delivered
from eos_mirror.replication.config import MARKERS_LOST_AFTER
from eos_mirror.settings.clients import claims_producer, mode_of, target_admin
from eos_mirror.settings.model import FlowSettings

PORTION: Final = 50
PORTION_BYTES: Final = 8_000_000
"""Most records and bytes in one transaction, and in memory. Each record is a batch of its own, so
that a refusal names it; the batches of a partition are sent one after the other."""

COMMAND: Final = "quarantine replay"

Portion = Sequence[tuple[Verdict, Held]]
"""What is appended in one transaction."""


class Replayer:
    """Replays the records of one flow. It may be interrupted, and run again."""

    def __init__(
        self, settings: FlowSettings, is_wanted: Callable[[str], bool], *, portion: int = PORTION
    ) -> None:
        """
        Args:
            is_wanted: Decides by the name of a source topic.
            portion: Most records in one transaction.
        """
        self._settings, self._is_wanted = settings, is_wanted
        self._portion = portion
        self._clusters = open_clusters(settings)
        self._topics = TopicSync(settings, self._clusters, on_event=lambda *_: None)
        self._plan = ReplayPlan(settings, self._clusters.target)
        self._ledger = KafkaLedger(claims_producer(settings), settings.flow.ledger_topic)

    def plan(self) -> list[Verdict]:
        """
        Return what would be done with each record that was not replayed yet. Writes nothing.

        Raises:
            ConfigError: There is no quarantine, or the flow mirrors at least once.
            UnsafeError: The flow runs in another mode, or MirrorMaker 2 continues its copies.
            RestartTask: A cluster did not answer.
        """
        pairs = pairs_of(self._facts())
        shadows = self._clusters.shadow_offsets.read(list(pairs.values()))
        return self._plan.verdicts(self._is_wanted, pairs, shadows, {})

    def finish(self) -> list[str]:
        """
        Start the topics again that an interrupted command has left stopped.

        Returns:
            Their names.

        Errors: as `run`.
        """
        topics = {held.record.source.topic for held in quarantined(self._settings, self._is_wanted)}
        return [
            topic
            for topic in sorted(topics)
            if start_left_stopped(self._settings, self._clusters, topic, COMMAND)
        ]

    def run(self, *, reason: str) -> Iterator[Verdict]:
        """
        Append the records that the target accepts now. Their topics are stopped meanwhile.

        Yields:
            Each record that was considered; one without a refusal is appended.

        Raises:
            UnsafeError: The run of the flow has not stopped a topic in time, or someone else
                writes a copy. What was yielded is done.
            Others: As `plan`.
        """
        by_topic: defaultdict[str, list[Verdict]] = defaultdict(list)
        for one in self.plan():
            by_topic[one.key.source.topic].append(one)
        for topic in sorted(by_topic):
            if all(one.refusal for one in by_topic[topic]):
                yield from by_topic[topic]
                continue
            with stopped_topic(self._settings, self._clusters, topic, COMMAND, reason):
                yield from self._replay(topic, reason)

    def _replay(self, topic: str, reason: str) -> Iterator[Verdict]:
        refused: dict[Key, str] = {}
        while True:
            try:
                yield from self._replay_accepted(topic, reason, refused)
            except RefusedByTarget as exc:
                found = self._named(topic, exc)
                if found.keys() <= refused.keys():
                    raise UnsafeError(f"{self._settings.flow}: {exc}") from exc
                refused |= found
            else:
                return

    def _named(self, topic: str, exc: RefusedByTarget) -> dict[Key, str]:
        """Return the records that the target refused: those of the named batches."""
        sources = {r: s for s, r in pairs_of(self._facts()).items() if s.topic == topic}
        named = {(sources.get(remote), one.first): one for remote, one in exc.refused.items()}
        return {
            key: f"{one.code}: {one.reason}"
            for held in quarantined(self._settings, lambda name: name == topic)
            if (one := named.get((held.record.source, held.record.offset)))
            for key in [key_of(held)]
        }

    def _replay_accepted(
        self, topic: str, reason: str, refused: Mapping[Key, str]
    ) -> Iterator[Verdict]:
        facts = self._facts()
        pairs = {one: remote for one, remote in pairs_of(facts).items() if one.topic == topic}
        switch = switch_of(self._settings, self._clusters, facts)
        with replace(switch, pairs=pairs).fenced() as fenced:
            # notes of an earlier command, and its records, must be visible before any is repeated
            self._wait_until_decided(pairs.values())
            verdicts = self._plan.verdicts(
                lambda name: name == topic, pairs, dict(fenced.shadows), refused
            )
            accepted = [one for one in verdicts if not one.refusal]
            with closing(self._portions(accepted)) as portions:
                for portion in portions:
                    self._append(portion, pairs, fenced, reason)
                    yield from (one for one, _ in portion)
        yield from (one for one in verdicts if one.refusal)

    def _portions(self, verdicts: Sequence[Verdict]) -> Generator[Portion]:
        """Read the records, and yield a portion when it is full."""
        portion: list[tuple[Verdict, Held]] = []
        size_bytes = 0
        found = quarantined_at(self._settings, [one.places[0] for one in verdicts])
        with closing(found):
            for one, held in zip(verdicts, found, strict=True):
                if key_of(held) != one.key:
                    raise RangeUnreadable(f"{held.place}: the quarantine has changed meanwhile")
                more = len(held.record.key or b"") + len(held.record.value or b"")
                is_full = len(portion) == self._portion or size_bytes + more > PORTION_BYTES
                if portion and is_full:
                    yield portion
                    portion, size_bytes = [], 0
                portion.append((one, held))
                size_bytes += more
        if portion:
            yield portion

    def _wait_until_decided(self, remotes: Iterable[TopicPartition]) -> None:
        metadata = ClusterMetadata(target_admin(self._settings), side=Side.TARGET)
        places = [*partitions_of(self._settings, metadata), *remotes]
        written = metadata.high_watermarks(places)

        def look(_: Deadline) -> None:
            stable = metadata.ends(places)
            late = [str(one) for one in places if stable[one] < written[one]]
            if late:
                raise RetriableError(
                    f"{self._settings.flow}: a transaction is open on {', '.join(late)}; run the "
                    f"command again when it has ended"
                )

        retrying(look, within=MARKERS_LOST_AFTER)

    def _append(self, portion: Portion, pairs: Pairs, fenced: FencedPositions, reason: str) -> None:
        by_source: defaultdict[TopicPartition, list[Held]] = defaultdict(list)
        for one, held in portion:
            by_source[one.key.source].append(held)
        runs = {pairs[source]: list(map(run_of, some)) for source, some in by_source.items()}
        notes = [place.replayed() for one, _ in portion for place in one.places]
        note = partial(self._note, by_source, pairs, reason)
        fenced.append(runs, {self._settings.quarantine_topic: notes}, note)

    def _note(
        self,
        by_source: Mapping[TopicPartition, Sequence[Held]],
        pairs: Pairs,
        reason: str,
        delivered: Mapping[TopicPartition, Delivered],
    ) -> None:
        """Write ledger entries before the commit, so that no replayed record lacks one."""
        create_ledger(self._settings, self._clusters.target_topics)
        details = []
        for source, some in by_source.items():
            last = delivered[pairs[source]].last or 0
            details.append(
                {
                    "partition": str(source),
                    "topic_id": some[0].record.topic_id,
                    "remote": str(pairs[source]),
                    "from": last + 1 - len(some),
                    "to": last + 1,
                    "records": len(some),
                    "reason": reason or "replayed by an operator",
                }
            )
        self._ledger.append_all(Kind.REPLAY, details)

    def _facts(self) -> FlowFacts:
        flow = self._settings.flow
        if mode_of(self._settings) is not DeliveryMode.EXACTLY_ONCE:
            raise ConfigError(
                f"{flow}: in at-least-once mode a copy has no exact map: read the quarantine, and "
                f"append its records with a producer of your own"
            )
        facts = facts_of_this_mode(self._settings, self._clusters, self._topics)
        if not facts.has_claims_topic:
            raise ConfigError(f"{flow}: it never ran: nothing of it was quarantined")
        return facts
