"""
Explains differences by the ledger: a decided, recorded difference is no alarm.

Records that were dropped or quarantined are missing in the copy. Records that were replayed from
the quarantine are in it at another place.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from eos_mirror.audit.compacted import Why
from eos_mirror.audit.differences import Difference, Kind
from eos_mirror.audit.proof import PartitionProof
from eos_mirror.core import ledger
from eos_mirror.errors import ForeignRecord

LEFT_OUT = frozenset({ledger.Kind.DROP, ledger.Kind.QUARANTINE})
"""Kinds of entries that name records which are not in the copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """
    A range of offsets, start <= offset < end, whose differences are explained.

    Attributes:
        why: DROPPED explains missing records by their upstream offset, REPLAYED all others by their
            downstream offset.
        partition: Partition of the source, such as `orders-3`.
        topic_id: Id of the source topic: a topic that was created again has other offsets.
        count: Maximum number of records in the range.
    """

    why: Why
    partition: str
    topic_id: str
    start: int
    end: int
    count: int

    def covers(self, difference: Difference) -> bool:
        """Return True if the difference lies in the range."""
        if self.why is Why.REPLAYED:
            is_other = difference.kind is not Kind.MISSING
            return is_other and self.start <= difference.downstream_offset < self.end
        is_missing = difference.kind is Kind.MISSING
        return is_missing and self.start <= difference.upstream_offset < self.end


def explanations(entries: Iterable[ledger.LedgerEntry]) -> list[Explanation]:
    """
    Return what a ledger explains, without repetitions. A task that dies meanwhile repeats an entry.

    Raises:
        ForeignRecord: An entry lacks a field that docs/ledger.md requires.
    """
    found: dict[Explanation, None] = {}
    for entry in entries:
        found = {one: None for one in found if not _begins_again(entry, one.partition)}
        if entry.kind not in {*LEFT_OUT, ledger.Kind.REPLAY}:
            continue
        try:
            one = Explanation(
                why=Why.DROPPED if entry.kind in LEFT_OUT else Why.REPLAYED,
                partition=str(entry.details["partition"]),
                topic_id=str(entry.details["topic_id"]),
                start=int(entry.details["from"]),
                end=int(entry.details["to"]),
                count=int(entry.details["records"]),
            )
        except (KeyError, TypeError, ValueError) as exc:
            kind, details = entry.kind.value, dict(entry.details)
            raise ForeignRecord(f"ledger: not a whole {kind}: {details}") from exc
        found[one] = None
    return list(found)


def _begins_again(entry: ledger.LedgerEntry, partition: str) -> bool:
    """Return whether a new offset map begins with this entry: what was left out may come again."""
    if entry.kind is ledger.Kind.REWIND:
        return partition == entry.details.get("partition")
    is_reset = entry.kind is ledger.Kind.RESET
    return is_reset and partition.rpartition("-")[0] == str(entry.details.get("topic"))


def explain(proof: PartitionProof, topic_id: str, reasons: Iterable[Explanation]) -> PartitionProof:
    """
    Return the proof without the differences that are explained; they are counted.

    Args:
        topic_id: Id of the source topic that was compared.
    """
    differences: Sequence[Difference] = proof.differences
    counts: Counter[Why] = Counter()
    for one in reasons:
        if (one.partition, one.topic_id) == (str(proof.compared.source), topic_id):
            left = _without(differences, one)
            counts[one.why] += len(differences) - len(left)
            differences = left
    if not counts.total():
        return proof
    return replace(proof, differences=differences, explained=Counter(proof.explained) + counts)


def _without(differences: Sequence[Difference], one: Explanation) -> Sequence[Difference]:
    left, budget = [], one.count
    for difference in differences:
        if budget and one.covers(difference):
            budget -= 1
        else:
            left.append(difference)
    return left
