"""Records that the ledger says were left out: a loss that was decided and noted is no alarm."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from eos_mirror.audit.compacted import Why
from eos_mirror.audit.differences import Difference, Kind
from eos_mirror.audit.proof import PartitionProof
from eos_mirror.core import ledger
from eos_mirror.errors import ForeignWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """
    Some records with start <= upstream offset < end.

    Attributes:
        partition: Of the source, as `orders-3`.
        topic_id: Of the source topic: offsets of one that was created again are others.
        count: At most so many.
    """

    partition: str
    topic_id: str
    start: int
    end: int
    count: int


def left_out_by(entries: Iterable[ledger.LedgerEntry]) -> list[LeftOut]:
    """
    What a ledger says was left out. A task that died while it did so says it twice.

    Raises:
        ForeignWriter: An entry lacks what docs/ledger.md says it has.
    """
    found: dict[LeftOut, None] = {}
    for entry in entries:
        if entry.kind is not ledger.Kind.DROP:
            continue
        try:
            one = LeftOut(
                partition=str(entry.details["partition"]),
                topic_id=str(entry.details["topic_id"]),
                start=int(entry.details["from"]),
                end=int(entry.details["to"]),
                count=int(entry.details["records"]),
            )
        except (KeyError, TypeError, ValueError) as exc:
            raise ForeignWriter(f"ledger: not a whole drop: {dict(entry.details)}") from exc
        found[one] = None
    return list(found)


def explain_left_out(
    proof: PartitionProof, topic_id: str, left_out: Iterable[LeftOut]
) -> PartitionProof:
    """
    The same proof, without the missing records that were left out; they are counted instead.

    Args:
        topic_id: Of the source topic as it was compared.
    """
    differences: Sequence[Difference] = proof.differences
    for one in left_out:
        if (one.partition, one.topic_id) == (str(proof.compared.source), topic_id):
            differences = _without(differences, one)
    explained = len(proof.differences) - len(differences)
    if not explained:
        return proof
    return replace(
        proof,
        differences=differences,
        explained=Counter(proof.explained) + Counter({Why.LEFT_OUT: explained}),
    )


def _without(differences: Sequence[Difference], one: LeftOut) -> Sequence[Difference]:
    left, budget = [], one.count
    for difference in differences:
        is_inside = one.start <= difference.upstream_offset < one.end
        if budget and is_inside and difference.kind is Kind.MISSING:
            budget -= 1
        else:
            left.append(difference)
    return left
