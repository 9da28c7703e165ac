"""Finds the copies for which an operator has set the position back: they have records twice."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eos_mirror.audit.extent import PartitionSnapshot
from eos_mirror.core import ledger
from eos_mirror.core.records import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredAgain:
    """
    A partition whose records with start <= upstream offset < end are mirrored again.

    Attributes:
        source, target: The partition and its copy.
        downstream: The offset map begins there on the target. The copy is not compared before it.
        has_duplicates: The copy held records when the position was set back.
    """

    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    downstream: int
    has_duplicates: bool

    def __str__(self) -> str:
        """Return it for people."""
        text = (
            f"{self.source} [{self.start}, {self.end}): its position was set back; "
            f"{self.target} is compared from offset {self.downstream} on"
        )
        twice = f"{text}, and may have records of this range before it, too"
        return twice if self.has_duplicates else text

    def document(self) -> dict[str, Any]:
        """Return it for programs."""
        fields = asdict(self)
        return {
            "partition": self.source.partition,
            **{name: fields[name] for name in ("start", "end", "downstream", "has_duplicates")},
        }


def begin_inside(snapshots: Iterable[PartitionSnapshot]) -> bool:
    """Return whether an offset map begins after the first offset of its copy."""
    return any(one.offsets.downstream_start for one in snapshots)


def mirrored_again(
    snapshots: Sequence[PartitionSnapshot], entries: Sequence[ledger.LedgerEntry]
) -> list[MirroredAgain]:
    """
    Return the partitions whose present offset map begins where a position was set back to.

    Args:
        entries: The ledger. An entry whose command was never finished matches no map.
    """
    return [found for one in snapshots if (found := _newest(one, entries)) is not None]


def _newest(
    snapshot: PartitionSnapshot, entries: Sequence[ledger.LedgerEntry]
) -> MirroredAgain | None:
    begins = {
        "partition": str(snapshot.source),
        "topic_id": snapshot.source_topic_id,
        "to": snapshot.offsets.upstream_start,
        "remote": str(snapshot.target),
        "downstream": snapshot.offsets.downstream_start,
    }
    for entry in reversed(entries):
        if entry.kind is ledger.Kind.REWIND and begins.items() <= entry.details.items():
            return MirroredAgain(
                source=snapshot.source,
                target=snapshot.target,
                start=snapshot.offsets.upstream_start,
                end=int(entry.details.get("from", snapshot.offsets.upstream_start)),
                downstream=snapshot.offsets.downstream_start or 0,
                has_duplicates=bool(entry.details.get("duplicates")),
            )
    return None
