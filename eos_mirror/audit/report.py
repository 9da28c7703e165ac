"""The report of a proof, as text for people and as JSON for programs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from eos_mirror.audit.compacted import Why
from eos_mirror.audit.copy_counts import CopyCounts
from eos_mirror.audit.differences import Difference
from eos_mirror.audit.digest import VERSION as DIGEST_VERSION
from eos_mirror.audit.examine import Folded
from eos_mirror.audit.extent import Cause, Unproven
from eos_mirror.audit.mirrored_again import MirroredAgain
from eos_mirror.audit.proof import PartitionProof
from eos_mirror.audit.record_pairs import Record, RecordPair
from eos_mirror.core.plural import counted

VERSION = 1
SHOWN = 10
SHOWN_CHARACTERS = 200
TIMESTAMP_TYPES = ("none", "create", "append")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReport:
    """
    The report of one topic.

    Attributes:
        partitions: Partitions that were compared.
        incomparable: Why a partition could not be compared at all, by source partition.
        record_pairs: The records of some of the differences.
        again: Partitions whose position was set back.
    """

    source: str
    target: str
    partitions: Sequence[PartitionProof]
    incomparable: Mapping[str, str]
    record_pairs: Mapping[Difference, RecordPair] = field(default_factory=dict)
    again: Sequence[MirroredAgain] = ()

    @property
    def matched(self) -> int:
        """Return the number of records in their place, unchanged."""
        return sum(one.matched for one in self.partitions)

    @property
    def copies(self) -> CopyCounts:
        """Return the number of source records that have no copy, or several, on purpose."""
        return sum((one.copies for one in self.partitions), CopyCounts())

    @property
    def differences(self) -> list[Difference]:
        """Return all differences, by partition and offset."""
        return [difference for one in self.partitions for difference in one.differences]

    @property
    def explained(self) -> Counter[Why]:
        """Return the number of records that one side no longer has, by reason."""
        return sum((Counter(one.explained) for one in self.partitions), Counter())

    @property
    def incomplete(self) -> int:
        """Return how many partitions were not fully compared, for another cause than retention."""
        return len(self.incomparable) + sum(
            any(not gap.cause.is_harmless for gap in one.unproven) for one in self.partitions
        )

    @property
    def unproven(self) -> list[Unproven]:
        """Return all ranges that were not compared, by partition and offset."""
        return [gap for one in self.partitions for gap in one.unproven]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """
    The report of a flow.

    Attributes:
        explain: Also show the contents of records.
        base: Base of the folds; None without folds.
    """

    flow: str
    topics: Sequence[TopicReport]
    explain: bool = False
    base: int | None = None

    @property
    def holds(self) -> bool:
        """Return whether there is no difference, and only retention limited the comparison."""
        return not any(topic.differences or topic.incomplete for topic in self.topics)

    @property
    def copies(self) -> CopyCounts:
        """Return the number of source records that have no copy, or several, on purpose."""
        return sum((topic.copies for topic in self.topics), CopyCounts())

    def lines(self) -> Iterator[str]:
        """Yield the report as lines of text."""
        for topic in self.topics:
            yield from _topic_lines(topic, explain=self.explain)
        matched = sum(topic.matched for topic in self.topics)
        yield f"{self.flow}: {_matches(matched, self.copies)}, {self._verdict()}"

    def _verdict(self) -> str:
        differences = sum(len(topic.differences) for topic in self.topics)
        found = counted(differences, "difference") if differences else "no difference"
        incomplete = sum(topic.incomplete for topic in self.topics)
        if incomplete:
            return f"{found}, but {counted(incomplete, 'partition')} not fully compared"
        if any(topic.unproven or topic.again for topic in self.topics):
            return f"{found} in what was compared"
        return found

    def document(self) -> dict[str, Any]:
        """Return the report as JSON, as docs/verify.md describes it."""
        return {
            "version": VERSION,
            "digest": DIGEST_VERSION,
            **({} if self.base is None else {"base": str(self.base)}),
            "flow": self.flow,
            "holds": self.holds,
            **asdict(self.copies),
            "topics": [_topic_document(topic, explain=self.explain) for topic in self.topics],
        }


def _matches(count: int, copies: CopyCounts) -> str:
    matches = f"{counted(count, 'record')} match{'es' if count == 1 else ''}"
    filtered = f", {copies.filtered} filtered" if copies.filtered else ""
    return f"{matches}{filtered}{f', {copies.expanded} expanded' if copies.expanded else ''}"


def _topic_lines(topic: TopicReport, *, explain: bool) -> Iterator[str]:
    counts = Counter(difference.kind.value for difference in topic.differences)
    alike = "equal" if topic.matched or not topic.incomparable else "nothing compared"
    found = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or alike
    yield f"{topic.source} -> {topic.target}: {_matches(topic.matched, topic.copies)}, {found}"
    for one in topic.differences[:SHOWN]:
        pair = topic.record_pairs.get(one)
        fields = f" ({', '.join(pair.fields)})" if pair and pair.fields else ""
        yield (
            f"  {one.kind.value}{fields}: {one.source} offset {one.upstream_offset}, "
            f"{one.target} offset {one.downstream_offset}"
        )
        if pair and explain:
            yield f"    source: {_record_document(pair.source)}"
            yield f"    target: {_record_document(pair.target)}"
    if len(topic.differences) > SHOWN:
        yield f"  and {len(topic.differences) - SHOWN} more"
    for why, count in sorted(topic.explained.items()):
        yield f"  explained: {count} {why.value}"
    for one_again in topic.again:
        yield f"  mirrored again: {one_again}"
    yield from _gap_lines(topic.unproven)
    for partition, reason in topic.incomparable.items():
        yield f"  not compared: {partition}: {reason}"


def _gap_lines(gaps: Sequence[Unproven]) -> Iterator[str]:
    """Yield a line for each gap. The gaps of a sample are many, so they share one line."""
    not_sampled = sum(gap.end - gap.start for gap in gaps if gap.cause is Cause.NOT_SAMPLED)
    if not_sampled:
        yield f"  not in the sample: {counted(not_sampled, 'offset')}"
    for gap in gaps:
        if gap.cause is Cause.NOT_SAMPLED:
            continue
        cause = f"{gap.cause.value}{': ' if gap.reason else ''}{gap.reason}"
        yield f"  not compared: {gap.partition} [{gap.start}, {gap.end}): {cause}"


def _topic_document(topic: TopicReport, *, explain: bool) -> dict[str, Any]:
    return {
        "source": topic.source,
        "target": topic.target,
        "matched": topic.matched,
        **asdict(topic.copies),
        "partitions": [
            _partition_document(one, topic.record_pairs, explain=explain)
            for one in topic.partitions
        ],
        "incomparable": dict(topic.incomparable),
        "mirrored_again": [one.document() for one in topic.again],
    }


def _partition_document(
    one: PartitionProof, record_pairs: Mapping[Difference, RecordPair], *, explain: bool
) -> dict[str, Any]:
    where, folded = one.compared, one.folded
    folds = {} if folded is None else {"folds": _folds_document(folded)}
    return {
        "partition": where.source.partition,
        "upstream": [where.start, where.end],
        "downstream": [where.target_start, where.target_end],
        "matched": one.matched,
        **asdict(one.copies),
        "differences": [
            _difference_document(difference, record_pairs.get(difference), explain=explain)
            for difference in one.differences
        ],
        "explained": {why.value: count for why, count in sorted(one.explained.items())},
        "unproven": [
            {"start": gap.start, "end": gap.end, "cause": gap.cause.value, "reason": gap.reason}
            for gap in one.unproven
        ],
        **folds,
    }


def _folds_document(folded: Folded) -> dict[str, Any]:
    """Return folds as text, because most programs cannot read numbers of this length."""
    sides = {"source": folded.source, "target": folded.target}
    return {side: {"count": one.count, "fold": str(one.value)} for side, one in sides.items()}


def _difference_document(
    one: Difference, pair: RecordPair | None, *, explain: bool
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "kind": one.kind.value,
        "upstream_offset": one.upstream_offset,
        "target_partition": one.target.partition,
        "downstream_offset": one.downstream_offset,
    }
    if pair is not None:
        document["fields"] = list(pair.fields)
        if explain:
            document["source_record"] = _record_document(pair.source)
            document["target_record"] = _record_document(pair.target)
    return document


def _record_document(record: Record | None) -> dict[str, Any] | None:
    if record is None:
        return None
    kind, at_ms = record.timestamp
    return {
        "timestamp": at_ms,
        "timestamp_type": TIMESTAMP_TYPES[kind],
        "key": _shown(record.key),
        "value": _shown(record.value),
        "headers": [[name, _shown(value)] for name, value in record.headers],
    }


def _shown(data: bytes | None) -> str | None:
    """Return bytes as Python's repr, truncated."""
    if data is None:
        return None
    text = repr(data)[2:-1]
    return (
        text
        if len(text) <= SHOWN_CHARACTERS
        else f"{text[:SHOWN_CHARACTERS]}... ({len(data)} bytes)"
    )
