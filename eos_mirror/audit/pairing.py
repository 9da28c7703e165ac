"""Pairs the records of a range with those of its copy so that as few as possible have moved."""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from eos_mirror.audit.differences import Comparison, Difference, Gap, Kind, Log, UnmatchedRecord

Pairs = dict[int, int]
"""Index on the source to index on the target."""


def compare_range(source: Log, target: Log) -> Comparison:
    """
    Pair the records of a range with those of its copy.

    Of several copies the later ones are surplus, unless an earlier one is out of place.
    """
    pairs, spare = _pair(source.digests, target.digests)
    spine = _longest_rise(pairs)
    _take_what_fits(pairs, spine, spare, source.digests)
    paired = set(pairs.values())
    copied = {source.digests[i]: i for i in reversed(pairs)}
    unseen: list[UnmatchedRecord] = []
    unknown: list[UnmatchedRecord] = []
    found = [
        _difference(Kind.REORDERED, source, i, target, t)
        for i, t in pairs.items()
        if i not in spine
    ]
    for gap, lonely, strange in _gaps(source, target, pairs, spine):
        unseen += (
            UnmatchedRecord(gap, source.offsets[i], source.digests[i])
            for i in lonely
            if i not in pairs
        )
        for t in strange:
            if t in paired:
                continue
            original = copied.get(target.digests[t])
            if original is None:
                unknown.append(UnmatchedRecord(gap, target.offsets[t], target.digests[t]))
            else:
                found.append(_difference(Kind.DUPLICATED, source, original, target, t))
    return Comparison(matched=len(spine), differences=found, unseen=unseen, unknown=unknown)


def _difference(kind: Kind, source: Log, i: int, target: Log, t: int) -> Difference:
    return Difference(
        kind=kind,
        source=source.partition,
        upstream_offset=source.offsets[i],
        target=target.partition,
        downstream_offset=target.offsets[t],
    )


def _pair(
    source: Sequence[bytes], target: Sequence[bytes]
) -> tuple[Pairs, Mapping[bytes, deque[int]]]:
    """Pair equal records in order, and return the unpaired ones of the target too."""
    spare: dict[bytes, deque[int]] = defaultdict(deque)
    for t, digest in enumerate(target):
        spare[digest].append(t)
    pairs = {
        i: waiting.popleft() for i, digest in enumerate(source) if (waiting := spare.get(digest))
    }
    return pairs, spare


def _longest_rise(pairs: Pairs) -> set[int]:
    """Return the longest set of source indexes whose partners are in order."""
    ends: list[int] = []  # ends[k]: the smallest end of a rise of length k + 1
    owners: list[int] = []
    before: dict[int, int | None] = {}
    for i, t in pairs.items():
        length = bisect_left(ends, t)
        before[i] = owners[length - 1] if length else None
        if length == len(ends):
            ends.append(t)
            owners.append(i)
        else:
            ends[length] = t
            owners[length] = i
    spine: set[int] = set()
    at = owners[-1] if owners else None
    while at is not None:
        spine.add(at)
        at = before[at]
    return spine


def _take_what_fits(
    pairs: Pairs, spine: set[int], spare: Mapping[bytes, deque[int]], source: Sequence[bytes]
) -> None:
    """Pair with a copy in order where possible: a record with one is duplicated, not moved."""
    firm = sorted(spine)
    for i in [i for i in pairs if i not in spine]:
        at = bisect_left(firm, i)
        low = pairs[firm[at - 1]] if at else -1
        high = pairs[firm[at]] if at < len(firm) else None
        for t in spare[source[i]]:
            if low < t and (high is None or t < high):
                spare[source[i]].remove(t)
                pairs[i] = t
                spine.add(i)
                firm.insert(at, i)
                break


def _gaps(
    source: Log, target: Log, pairs: Pairs, spine: set[int]
) -> Iterator[tuple[Gap, range, range]]:
    """Yield the gaps between neighbours of the spine, with the indexes of both sides."""
    ends = (len(source.offsets), len(target.offsets))
    posts = [(-1, -1), *((i, pairs[i]) for i in sorted(spine)), ends]
    for (i, t), (next_i, next_t) in pairwise(posts):
        if next_i - i > 1 or next_t - t > 1:
            gap = Gap(
                source=source.partition,
                upstream_next=source.offset_at(next_i),
                target=target.partition,
                downstream_next=target.offset_at(next_t),
            )
            yield gap, range(i + 1, next_i), range(t + 1, next_t)
