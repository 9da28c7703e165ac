"""Explains records that the ledger lists as dropped or quarantined: that is no alarm."""

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
class DroppedRange:
    """
    Records that were left out, with start <= upstream offset < end.

    Attributes:
        partition: Partition of the source, such as `orders-3`.
        topic_id: Id of the source topic: a topic that was created again has other offsets.
        count: Maximum number of dropped records in the range.
    """

    partition: str
    topic_id: str
    start: int
    end: int
    count: int


def dropped_ranges(entries: Iterable[ledger.LedgerEntry]) -> list[DroppedRange]:
    """
    Return the drops of a ledger, without repetitions. A task that dies meanwhile repeats one.

    Raises:
        ForeignRecord: An entry lacks a field that docs/ledger.md requires.
    """
    found: dict[DroppedRange, None] = {}
    for entry in entries:
        if entry.kind not in LEFT_OUT:
            continue
        try:
            one = DroppedRange(
                partition=str(entry.details["partition"]),
                topic_id=str(entry.details["topic_id"]),
                start=int(entry.details["from"]),
                end=int(entry.details["to"]),
                count=int(entry.details["records"]),
            )
        except (KeyError, TypeError, ValueError) as exc:
            raise ForeignRecord(f"ledger: not a whole drop: {dict(entry.details)}") from exc
        found[one] = None
    return list(found)


def explain_dropped(
    proof: PartitionProof, topic_id: str, dropped: Iterable[DroppedRange]
) -> PartitionProof:
    """
    Return the proof without the missing records that were dropped; they count as explained.

    Args:
        topic_id: Id of the source topic that was compared.
    """
    differences: Sequence[Difference] = proof.differences
    for one in dropped:
        if (one.partition, one.topic_id) == (str(proof.compared.source), topic_id):
            differences = _without(differences, one)
    explained = len(proof.differences) - len(differences)
    if not explained:
        return proof
    return replace(
        proof,
        differences=differences,
        explained=Counter(proof.explained) + Counter({Why.DROPPED: explained}),
    )


def _without(differences: Sequence[Difference], one: DroppedRange) -> Sequence[Difference]:
    left, budget = [], one.count
    for difference in differences:
        is_inside = one.start <= difference.upstream_offset < one.end
        if budget and is_inside and difference.kind is Kind.MISSING:
            budget -= 1
        else:
            left.append(difference)
    return left
