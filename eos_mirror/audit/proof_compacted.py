"""
The proof of a compacted topic: compares key by key, a part of the keys at a time.

Compaction continues meanwhile, because of records that were written after the ends were frozen. So
a partition with differences is compared again, up to its new ends, before they are reported.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from eos_mirror.audit.compacted import CompactedComparison, Why
from eos_mirror.audit.copy_counts import CopyCounts
from eos_mirror.audit.differences import Difference
from eos_mirror.audit.extent import Cause, Extent, PartitionSnapshot, plan_extent, unreadable
from eos_mirror.audit.proof import ATTEMPTS, PartitionProof, Pool
from eos_mirror.audit.worker import Keys, Unreadable

MAX_PARTS = 256


class KeyExaminer(Protocol):
    """Compares a part of the keys. Implemented by `worker.Work`."""

    def compare_keys(self, keys: Keys) -> CompactedComparison | Unreadable:
        """Compare some keys of a partition with their copies."""


@dataclass(frozen=True, slots=True)
class CompactedProver:
    """
    Compares partitions of one compacted topic with their copies.

    Attributes:
        look_again: Returns the partition with its current log starts and ends.
        on_done: Called for each part of the keys in the first pass.
    """

    pool: Pool
    examiner: KeyExaminer
    look_again: Callable[[PartitionSnapshot], PartitionSnapshot]
    on_done: Callable[[], None] = lambda: None

    def prove(
        self, snapshots: Sequence[PartitionSnapshot], *, max_offsets: int
    ) -> list[PartitionProof]:
        """
        Prove all partitions, in order.

        Args:
            max_offsets: The keys of a longer partition are split into parts; each part reads the
                whole partition.

        Raises:
            RestartTask: A cluster did not answer (SourceUnavailable or TargetUnavailable).
        """
        proofs: dict[int, PartitionProof] = {}
        left = dict(enumerate(snapshots))
        for attempt in range(ATTEMPTS):
            on_done = (lambda: None) if attempt else self.on_done
            proofs.update(self._once(left, max_offsets, on_done))
            left = {
                number: self.look_again(one)
                for number, one in left.items()
                if proofs[number].differences or _was_unreadable(proofs[number])
            }
            if not left:
                break
        return [proof for _, proof in sorted(proofs.items())]

    def _once(
        self, snapshots: dict[int, PartitionSnapshot], max_offsets: int, on_done: Callable[[], None]
    ) -> Iterator[tuple[int, PartitionProof]]:
        extents = {number: plan_extent(one) for number, one in snapshots.items()}
        tasks = {
            keys: number
            for number, one in snapshots.items()
            for keys in _parts(one, extents[number], max_offsets)
        }
        found: dict[int, list[CompactedComparison | Unreadable]] = {n: [] for n in snapshots}
        for keys, result in self.pool.map(self.examiner.compare_keys, list(tasks)):
            found[tasks[keys]].append(result)
            on_done()
        for number, results in found.items():
            yield number, _proof(extents[number], results)


def _parts(one: PartitionSnapshot, extent: Extent, max_offsets: int) -> Iterator[Keys]:
    if one.compaction is None:
        raise ValueError(f"{one.source} is not compacted")
    length = extent.whole.end - extent.whole.start
    parts = min(MAX_PARTS, max(1, -(-length // max_offsets)))
    for part in range(parts):
        yield Keys(
            where=extent.whole,
            offsets=one.offsets,
            compaction=one.compaction,
            source_log_end=one.source_log_end,
            target_log_end=one.target_log_end,
            part=part,
            parts=parts,
        )


def _proof(extent: Extent, results: Sequence[CompactedComparison | Unreadable]) -> PartitionProof:
    differences: list[Difference] = []
    explained: Counter[Why] = Counter()
    unproven = list(extent.unproven)
    copies = CopyCounts()
    matched = 0
    for one in results:
        if isinstance(one, Unreadable):
            unproven.append(unreadable(extent.whole, one.reason))
            continue
        matched += one.matched
        differences += one.differences
        explained.update(one.explained)
        copies = max(copies, one.copies, key=lambda counts: counts.filtered)  # each reads all keys
    return PartitionProof(
        compared=extent.whole,
        matched=matched,
        differences=sorted(differences, key=lambda d: (d.upstream_offset, d.downstream_offset)),
        unproven=unproven,
        explained=explained,
        copies=copies,
    )


def _was_unreadable(proof: PartitionProof) -> bool:
    return any(one.cause is Cause.UNREADABLE for one in proof.unproven)
