"""Reads both clusters after a graceful stop and runs every checker."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from eos_mirror.core.claims import MODE_KEY
from eos_mirror.core.map_records import segments_of
from eos_mirror.core.metadata import decode
from eos_mirror.core.offset_map import MapTail
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import MirrorError
from eos_mirror.kafka.target import KafkaTarget
from eos_mirror.kafka.topic_reader import read_compacted
from eos_mirror.operate.translate import MapReader
from eos_mirror.ports import PartitionEnd, ShadowOffset
from eos_mirror.testing import PartitionComparison, Record, compare_partition, read_topic
from tests.chaos import checks
from tests.chaos.drain import positions, source_ends
from tests.chaos.load import Journal, number_of
from tests.chaos.quarantine import Copies, Moved, check_quarantined, without
from tests.chaos.site import COMPACTED, DOOMED, FLOW, PARTITIONS, SOURCES, Site, remote

READ_WITHIN = timedelta(seconds=120)
Records = Mapping[TopicPartition, Sequence[Record]]


@dataclass(slots=True)
class Audit:
    """
    The findings of the checkers.

    Attributes:
        complaints: Complaints by checker.
        compared: Comparisons by source partition, except those of the compacted topic.
        translated: Number of offsets that were translated.
        aborted_in_vain: Number of records that the load aborted but the source committed.
    """

    complaints: dict[str, list[str]] = field(default_factory=dict)
    compared: dict[TopicPartition, PartitionComparison] = field(default_factory=dict)
    translated: int = 0
    aborted_in_vain: int = 0

    def add(self, checker: str, where: object, complaints: Iterable[str]) -> None:
        """Record the complaints of one checker about one place, or that it had none."""
        self.complaints.setdefault(checker, []).extend(f"{where}: {text}" for text in complaints)

    def count(self, checker: str) -> int:
        """Return the number of complaints of one checker."""
        return len(self.complaints.get(checker, []))


def read_all(cluster: Mapping[str, str], *, copies: bool) -> dict[TopicPartition, list[Record]]:
    """Return every committed record, by partition."""
    found = {}
    for topic, count in PARTITIONS.items():
        name = remote(TopicPartition(topic, 0)).topic if copies else topic
        read = read_topic(cluster, name, partitions=count, within=READ_WITHIN)
        found.update({TopicPartition(name, p): records for p, records in enumerate(read)})
    return found


def audit_records(
    audit: Audit,
    source: Records,
    target: Records,
    *,
    moved: Moved,
    copies: Copies,
    journal: Journal,
    beginnings: Collection[TopicPartition],
    exactly_once: bool,
) -> None:
    """
    Run checker 1, and check that the source kept what it acknowledged.

    Args:
        moved: What the quarantine has instead of the copies.
        copies: What the message handler makes of a record.
        beginnings: Source partitions that stopped for an allowed reason: the copy may be a prefix.
    """
    for one in SOURCES:
        before = without(source[one], moved[one], one.topic, copies)
        after = target[remote(one)]
        audit.add("quarantine", one, check_quarantined(source[one], moved[one], one.topic, copies))
        if one in beginnings:
            before = [] if one.topic == COMPACTED else before[: len(after)]
        if one.topic == COMPACTED:
            written = journal.compacted[one.partition]
            check = checks.check_compacted if exactly_once else checks.check_repeated_compacted
            audit.add("sequence", one, check(written, before, after))
            continue
        compared = audit.compared[one] = compare_partition(before, after)
        if exactly_once:
            audit.add("sequence", one, [str(compared.first_difference)] * (not compared.exact))
        else:
            audit.add("sequence", one, checks.check_repeated(compared))
        there = [number_of(record) for record in source[one]]
        audit.add("source", one, checks.check_source(journal.acknowledged.get(one, ()), there))
    audit.add("source", "load", journal.failed[: checks.SHOWN])


def audit_witness(
    audit: Audit, seen: Records, source: Records, target: Records, *, journal: Journal
) -> None:
    """Run checker 2. A record that the load aborted but the source committed is not aborted."""
    for one in SOURCES:
        records = seen[remote(one)]
        audit.add("reader", remote(one), checks.check_witness(records, target[remote(one)]))
        committed = {number_of(record) for record in source[one]}
        numbers = {number_of(record) for record in records}
        audit.add("reader", remote(one), checks.check_aborted(journal.aborted - committed, numbers))
        audit.aborted_in_vain += len(journal.aborted & committed)


def audit_positions(audit: Audit, site: Site, sources: Collection[TopicPartition]) -> None:
    """Run checker 3."""
    ends = {one: end for one, end in source_ends(site.view).items() if one in sources}
    audit.add("position", FLOW, checks.check_positions(positions(site), ends))


def audit_map(
    audit: Audit,
    site: Site,
    sources: Collection[TopicPartition],
    source: Records,
    target: Records,
    journal: Journal,
) -> None:
    """
    Run checkers 4 and 5.

    Args:
        source: Copies that should be there, with the offsets of their records.
    """
    ends = source_ends(site.view)
    reader = MapReader(flow=FLOW, client_config=site.target.client_config())
    for one in sources:
        pairs = _pairs(one, source[one], target[remote(one)], journal)
        if pairs is None:
            audit.add("translation", one, ["not comparable: the sequences differ"])
            continue
        try:
            offsets = reader.load(remote(one))
        except MirrorError as exc:
            audit.add("translation", one, [str(exc)])
            continue
        audit.add("translation", one, checks.check_translation(offsets, pairs, ends[one]))
        audit.translated += ends[one] + 1
    _audit_chains(audit, site, sources)


def audit_leftovers(
    audit: Audit, site: Site, sources: Collection[TopicPartition], processes: Sequence[int]
) -> None:
    """Run checker 6."""
    view = site.view
    records = read_compacted(
        site.target.client_config(), FLOW.claims_topic, group=FLOW.shadow_group
    )
    # a deleted copy gets no new claim, so the claim of its dead writer is never removed
    claims = [key for key in records if key != MODE_KEY and DOOMED not in key]
    written = [
        *(remote(one) for one in sources),
        TopicPartition(FLOW.claims_topic, 0),
    ]
    if site.exactly_once:
        written.append(TopicPartition(FLOW.offset_map_topic, 0))
    stable, high = view.target.ends(written), view.target.high_watermarks(written)
    ends = {one: PartitionEnd(stable=stable[one], written=high[one]) for one in written}
    listed = site.target.tool("TransactionsCommand", "list").stdout
    audit.add(
        "leftovers",
        FLOW,
        checks.check_leftovers(claims, transactions_of(listed), ends, processes=processes),
    )


def transactions_of(listed: str) -> dict[str, str]:
    """Return the state of each transactional id of our flow, as listed by kafka-transactions.sh."""
    rows = [line.split() for line in listed.splitlines() if line.startswith(f"{FLOW.name}.")]
    return {row[0]: row[-1] for row in rows}


def _pairs(
    one: TopicPartition, source: Sequence[Record], target: Sequence[Record], journal: Journal
) -> list[checks.Pair] | None:
    """Return the offsets of each record on both sides; None if the copy is not exact."""
    if one.topic != COMPACTED:
        if len(source) != len(target):
            return None
        return [(a.offset, b.offset) for a, b in zip(source, target, strict=True)]
    upstream = {record: n for n, record in enumerate(journal.compacted[one.partition])}
    if any(record not in upstream for record in target):
        return None
    return [(upstream[record], record.offset) for record in target]


def _audit_chains(audit: Audit, site: Site, sources: Collection[TopicPartition]) -> None:
    entries = read_compacted(
        site.target.client_config(), FLOW.offset_map_topic, group=FLOW.shadow_group
    )
    remotes = [remote(one) for one in sources]
    target = KafkaTarget(FLOW, client_config=site.target.client_config())
    shadows = target.shadow_offsets(remotes)
    for one in remotes:
        shadow = shadows[one]
        if not isinstance(shadow, ShadowOffset):
            audit.add("chain", one, ["no stable shadow offset"])
            continue
        tail = MapTail.decode(decode(shadow.metadata).tail).freeze()
        spilled = [s for s in segments_of(entries, one) if s.number < tail.number]
        audit.add("chain", one, checks.check_chain([*spilled, tail]))
