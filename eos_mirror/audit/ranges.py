"""Ranges of a source partition, and the ranges of the target that hold their copies."""

import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from eos_mirror.core.offset_map import BEFORE_START, PENDING, Untranslatable
from eos_mirror.core.records import TopicPartition

Translate = Callable[[int], int | Untranslatable]


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """
    Records with start <= offset < end, and the range that must hold their copies and no more.

    Attributes:
        start: Upstream offset.
        target_start: Downstream offset.
        timestamps: False if the remote topic stamps records with its own clock.
    """

    source: TopicPartition
    start: int
    end: int
    target: TopicPartition
    target_start: int
    target_end: int
    timestamps: bool = True

    def __str__(self) -> str:
        return f"{self.source} [{self.start}, {self.end})"


def split_range(whole: Range, translate: Translate, *, max_offsets: int) -> Iterator[Range]:
    """
    Cut a range into parts of equal length, none longer than `max_offsets`.

    Args:
        translate: Maps an upstream offset exactly to the downstream offset where a reader of the
            copy resumes. So every record is in exactly one part. A copy that would be after the
            end of the range on the target was lost there.

    Raises:
        ValueError: The map does not cover the range.
    """
    length = whole.end - whole.start
    count = max(1, -(-length // max_offsets))
    cuts = [whole.start + length * part // count for part in range(count + 1)]
    downstream = [min(_exactly(translate(cut), cut), whole.target_end) for cut in cuts[1:-1]]
    ends = [whole.target_start, *downstream, whole.target_end]
    for part in range(count):
        yield Range(
            source=whole.source,
            start=cuts[part],
            end=cuts[part + 1],
            target=whole.target,
            target_start=ends[part],
            target_end=ends[part + 1],
            timestamps=whole.timestamps,
        )


def sample_ranges(parts: Sequence[Range], fraction: float) -> list[Range]:
    """Choose some ranges of a partition at random, at least one, and return them in order."""
    count = max(1, math.ceil(len(parts) * fraction))
    chosen = secrets.SystemRandom().sample(range(len(parts)), min(count, len(parts)))
    return [parts[index] for index in sorted(chosen)]


def _exactly(answer: int | Untranslatable, upstream: int) -> int:
    if answer is PENDING or answer is BEFORE_START:
        raise ValueError(f"the offset map does not know {upstream}: {answer.name}")
    return answer
