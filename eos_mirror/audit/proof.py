"""
The proof of a flow: compares every range with its copy, and unequal ones record by record.

This module only decides what to do next; the pool does the work.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from eos_mirror.audit.compacted import Why
from eos_mirror.audit.copy_counts import CopyCounts
from eos_mirror.audit.differences import (
    Comparison,
    Difference,
    UnmatchedRecord,
    name_strangers,
    settle,
)
from eos_mirror.audit.digest import Fold, Folder
from eos_mirror.audit.examine import Folded, Matched
from eos_mirror.audit.extent import (
    Cause,
    PartitionSnapshot,
    Unproven,
    cut_to,
    plan_extent,
    unreadable,
)
from eos_mirror.audit.proven import Proven, ProvenRange
from eos_mirror.audit.ranges import Range, sample_ranges, split_range
from eos_mirror.audit.worker import Found, Unreadable
from eos_mirror.core.records import TopicPartition

T = TypeVar("T")
R = TypeVar("R")

MAX_STRANGERS = 100_000
"""Originals are searched for this many records; the others are reported as foreign."""

ATTEMPTS = 3
"""How often a range is tried while retention deletes its start."""


class Pool(Protocol):
    """Runs tasks in parallel."""

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[T, R]]:
        """Run tasks and yield each one with its result, in order of completion."""


class Examiner(Protocol):
    """Compares ranges. Implemented by `worker.Work`."""

    def match(self, where: Range) -> Matched | Unreadable:
        """Check whether a range equals its copy."""

    def fold(self, where: Range) -> Folded | Unreadable:
        """Fold a range and its copy."""

    def examine(self, where: Range) -> Comparison | Unreadable:
        """Compare a range with its copy, record by record."""

    def find(self, where: Range, wanted: Set[bytes]) -> Found | Unreadable:
        """Find source records by digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProof:
    """
    The proof of one partition.

    Attributes:
        compared: From the first to the last record that could be compared.
        matched: Number of records in their place, unchanged.
        unproven: Ranges that were not compared, by offset.
        explained: Number of records that one side no longer has, by reason.
        copies: Source records that have no copy, or several, because the flow is configured so.
        folded: Folds of everything that was read, if they were asked for.
    """

    compared: Range
    matched: int
    differences: Sequence[Difference]
    unproven: Sequence[Unproven]
    explained: Mapping[Why, int] = field(default_factory=dict)
    copies: CopyCounts = field(default_factory=CopyCounts)
    folded: Folded | None = None


@dataclass(frozen=True, slots=True)
class Prover:
    """
    Compares partitions of one topic with their copies.

    Attributes:
        look_again: Returns the partition with its current log starts.
        on_done: Called for each range that was compared.
        sample: Share of the ranges of each partition that is compared.
        proven: Ranges that are not compared again; `prove` adds to them.
        folder: Has the base of `examiner.fold`; set if folds are asked for.
    """

    pool: Pool
    examiner: Examiner
    look_again: Callable[[PartitionSnapshot], PartitionSnapshot]
    on_done: Callable[[], None] = lambda: None
    sample: float = 1.0
    proven: Proven = field(default_factory=Proven)
    folder: Folder | None = None

    def prove(
        self, snapshots: Sequence[PartitionSnapshot], *, max_offsets: int
    ) -> list[PartitionProof]:
        """
        Prove all partitions, in order.

        Args:
            max_offsets: Maximum length of a range.

        Raises:
            RestartTask: A cluster did not answer (SourceUnavailable or TargetUnavailable).
        """
        case = _Case(snapshots, self.proven, max_offsets=max_offsets, sample=self.sample)
        unequal = []
        for part, found in self._first_look(case):
            self.on_done()
            if found.equal:
                case.count(part.source, found.count, found.copies)
                topics = case.snapshots[part.source].topics
                self.proven.add(
                    ProvenRange(where=part, topics=topics, count=found.count, copies=found.copies)
                )
            else:
                unequal.append(part)
        comparisons = []
        for part, one in self._work(self.examiner.examine, unequal, case):
            case.count(part.source, one.matched, one.copies)
            comparisons.append(one)
        differences, strangers = settle(comparisons)
        for one in comparisons:
            differences += one.differences
        differences += name_strangers(strangers, self._originals_of(strangers, case))
        return case.proofs(differences)

    def _first_look(self, case: "_Case") -> Iterator[tuple[Range, Matched | Folded]]:
        if self.folder is None:
            yield from self._work(self.examiner.match, case.ranges, case)
            return
        folds: dict[TopicPartition, list[tuple[Range, Folded]]] = {one: [] for one in case.extents}
        for part, folded in self._work(self.examiner.fold, case.ranges, case):
            folds[part.source].append((part, folded))
            yield part, folded
        case.folded = {source: _joined(self.folder, parts) for source, parts in folds.items()}

    def _originals_of(
        self, strangers: Sequence[UnmatchedRecord], case: "_Case"
    ) -> dict[bytes, tuple[TopicPartition, int]]:
        """Find the originals in all ranges; this reads the source once more."""
        wanted = frozenset(odd.digest for odd in strangers[:MAX_STRANGERS])
        found: dict[bytes, tuple[TopicPartition, int]] = {}
        if wanted:
            find = partial(self.examiner.find, wanted=wanted)
            for part, answer in self.pool.map(find, [*case.ranges, *case.proven]):
                if not isinstance(answer, Unreadable):
                    for digest, offset in answer.items():
                        place = (part.source, offset)
                        found[digest] = min(place, found.get(digest, place))
        return found

    def _work(
        self,
        work: Callable[[Range], R | Unreadable],
        ranges: Sequence[Range],
        case: "_Case",
    ) -> Iterator[tuple[Range, R]]:
        """Yield the results of readable ranges; record the others as unproven, with the cause."""
        for attempt in range(1, ATTEMPTS + 1):
            left = []
            for part, result in self.pool.map(work, ranges):
                if not isinstance(result, Unreadable):
                    yield part, result
                elif attempt == ATTEMPTS:
                    case.unproven.append(unreadable(part, result.reason))
                else:
                    now = plan_extent(self.look_again(case.snapshots[part.source]))
                    rest, gone = cut_to(part, now)
                    case.unproven += gone
                    left += [rest] if rest is not None else []
            ranges = left


def _joined(folder: Folder, parts: list[tuple[Range, Folded]]) -> Folded:
    """Join the folds of consecutive ranges."""
    source = target = Fold()
    for _, folded in sorted(parts, key=lambda part: part[0].start):
        source = folder.join(source, folded.source)
        target = folder.join(target, folded.target)
    return Folded(source=source, target=target)


def _gaps(whole: Range, chosen: Sequence[Range]) -> Iterator[Unproven]:
    """Yield the parts of a partition between the chosen ranges."""
    borders = [whole.start, *(at for one in chosen for at in (one.start, one.end)), whole.end]
    for start, end in zip(borders[::2], borders[1::2], strict=True):
        if start < end:
            yield Unproven(partition=whole.source, start=start, end=end, cause=Cause.NOT_SAMPLED)


class _Case:
    """Collects the results for the partitions of one topic."""

    def __init__(
        self,
        snapshots: Sequence[PartitionSnapshot],
        proven: Proven,
        *,
        max_offsets: int,
        sample: float,
    ) -> None:
        self.snapshots = {one.source: one for one in snapshots}
        self.extents = {one.source: plan_extent(one) for one in snapshots}
        self.matched: Counter[TopicPartition] = Counter()
        self.copies: defaultdict[TopicPartition, CopyCounts] = defaultdict(CopyCounts)
        self.folded: Mapping[TopicPartition, Folded] = {}
        self.unproven = [gap for extent in self.extents.values() for gap in extent.unproven]
        self.ranges: list[Range] = []
        self.proven: list[Range] = []
        for one in snapshots:
            whole = self.extents[one.source].whole
            for known in proven.within(whole, one.topics):
                self.proven.append(known.where)
                self.count(one.source, known.count, known.copies)
            for piece in proven.rest(whole, one.topics):
                parts = list(split_range(piece, one.offsets.translate, max_offsets=max_offsets))
                chosen = sample_ranges(parts, sample)
                self.ranges += chosen
                self.unproven += _gaps(piece, chosen)

    def count(self, source: TopicPartition, matched: int, copies: CopyCounts) -> None:
        """Add the counts of one range."""
        self.matched[source] += matched
        self.copies[source] += copies

    def proofs(self, differences: Sequence[Difference]) -> list[PartitionProof]:
        """Return the proofs in the order of the partitions, each sorted by offset."""
        return [
            PartitionProof(
                compared=extent.whole,
                matched=self.matched[source],
                differences=sorted(
                    (one for one in differences if one.source == source),
                    key=lambda one: (one.upstream_offset, one.downstream_offset),
                ),
                unproven=sorted(
                    (one for one in self.unproven if one.partition == source),
                    key=lambda one: one.start,
                ),
                copies=self.copies[source],
                folded=self.folded.get(source),
            )
            for source, extent in self.extents.items()
        ]
