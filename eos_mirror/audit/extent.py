"""
What of a partition can be compared now, and what no longer can.

Two logs that live: retention takes their beginnings, and the mirror goes on at their ends. So the
ends are frozen first, and what retention took is named, not called lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from eos_mirror.audit.compacted import Compaction
from eos_mirror.audit.ranges import Range
from eos_mirror.core.offset_map import OffsetMap, Untranslatable
from eos_mirror.core.records import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """
    What somebody wants compared: records with start <= upstream offset < end.

    Attributes:
        end: None: all that there is.
    """

    start: int = 0
    end: int | None = None

    def clip(self, offset: int) -> int:
        """The nearest offset of the window, or its end."""
        offset = max(offset, self.start)
        return offset if self.end is None else min(offset, max(self.start, self.end))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    One partition on both clusters.

    Attributes:
        source_start: Where its log starts now.
        target_end: Last stable offset, asked for *before* the map was read: so the map knows
            every transaction of ours below it.
        offsets: As committed with the shadow offset.
        timestamps: False if the remote topic stamps records with its own clock.
        source_log_end, target_log_end: Last stable offsets, asked for after the map was read: so
            all that the map knows must be below them, or it was lost.
        compaction: None if neither side is compacted.
        window: Of what was mirrored.
        source_topic_id: If anybody is to know what was proven of it; `target_topic_id` likewise.
    """

    source: TopicPartition
    source_start: int
    target: TopicPartition
    target_start: int
    target_end: int
    source_log_end: int
    target_log_end: int
    offsets: OffsetMap
    timestamps: bool = True
    compaction: Compaction | None = None
    window: Window = Window()
    source_topic_id: str = ""
    target_topic_id: str = ""

    @property
    def topics(self) -> str:
        """Both ids: one that was created again is another."""
        return f"{self.source_topic_id} {self.target_topic_id}"


class Cause(StrEnum):
    """Why something is not compared."""

    EXPIRED_ON_SOURCE = "expired on the source"
    EXPIRED_ON_TARGET = "expired on the target"
    LOST_ON_SOURCE = "lost on the source"
    """Mirrored, and behind the end of its log now: the log was cut."""

    UNREADABLE = "unreadable"
    NOT_SAMPLED = "not in the sample"

    @property
    def is_harmless(self) -> bool:
        """Whether it is what retention does, or what was asked for."""
        return self not in (Cause.LOST_ON_SOURCE, Cause.UNREADABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unproven:
    """
    Records with start <= upstream offset < end of which nothing is known.

    Attributes:
        partition: Of the source.
        reason: More than the cause says, if there is more.
    """

    partition: TopicPartition
    start: int
    end: int
    cause: Cause
    reason: str = ""


def unreadable(where: Range, reason: str) -> Unproven:
    """All of a range."""
    return Unproven(
        partition=where.source,
        start=where.start,
        end=where.end,
        cause=Cause.UNREADABLE,
        reason=reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """What to compare, and what cannot be. Together they are all that was mirrored and wanted."""

    whole: Range
    unproven: Sequence[Unproven]


def plan_extent(standing: Standing) -> Extent:
    """
    Freeze a partition.

    A record on the target that the map does not know, before the first or behind the last one of
    ours, is inside the range, so that it is found. So is what the target has lost of its end.
    Records of transactions that were committed after the target's end was asked for are not.

    Raises:
        ValueError: The map does not know the start of what is left.
    """
    offsets = standing.offsets
    first, frozen = offsets.upstream_start, _upstream_end(standing)
    end = max(first, min(frozen, standing.source_log_end))
    on_source = min(max(first, standing.source_start), end)
    on_target = min(max(on_source, _first_copied(standing)), end)
    unproven = [
        Unproven(partition=standing.source, start=start, end=until, cause=cause)
        for start, until, cause in (
            (first, on_source, Cause.EXPIRED_ON_SOURCE),
            (on_source, on_target, Cause.EXPIRED_ON_TARGET),
            (end, frozen, Cause.LOST_ON_SOURCE),
        )
        if start < until
    ]
    target_start, target_end = standing.target_start, standing.target_end
    if end < frozen:
        target_end = min(target_end, offsets.copy_of(end))
    if on_target > first:
        target_start = max(target_start, _exactly(offsets.translate(on_target)))
    whole = Range(
        source=standing.source,
        start=on_target,
        end=end,
        target=standing.target,
        target_start=min(target_start, target_end),
        target_end=target_end,
        timestamps=standing.timestamps,
    )
    return _within(standing, Extent(whole=whole, unproven=unproven))


def _within(standing: Standing, extent: Extent) -> Extent:
    """Only what is wanted."""
    window, whole = standing.window, extent.whole

    def copy_of(upstream: int) -> int:
        """Where a reader of the copy goes on; what lies behind the end was lost there."""
        if upstream == whole.end:
            return whole.target_end
        return min(_exactly(standing.offsets.translate(upstream)), whole.target_end)

    start = min(window.clip(whole.start), whole.end)
    end = max(start, min(window.clip(whole.end), whole.end))
    target_start = whole.target_start if start == whole.start else copy_of(start)
    target_end = copy_of(end)
    clipped = [
        replace(gap, start=window.clip(gap.start), end=window.clip(gap.end))
        for gap in extent.unproven
    ]
    return Extent(
        whole=replace(
            whole,
            start=start,
            end=end,
            target_start=min(target_start, target_end),
            target_end=target_end,
        ),
        unproven=[gap for gap in clipped if gap.start < gap.end],
    )


def cut_to(where: Range, extent: Extent) -> tuple[Range | None, Sequence[Unproven]]:
    """
    What is left of a range after retention has passed its start, and what is not.

    Args:
        extent: Of the partition, planned anew.
    """
    whole = extent.whole
    start = min(max(where.start, whole.start), where.end)
    gone = [
        replace(one, start=max(one.start, where.start), end=min(one.end, start))
        for one in extent.unproven
        if max(one.start, where.start) < min(one.end, start)
    ]
    if start == where.start:
        return replace(where, target_start=max(where.target_start, whole.target_start)), gone
    if start == where.end:
        return None, gone
    return replace(where, start=start, target_start=whole.target_start), gone


def _upstream_end(standing: Standing) -> int:
    """Of the last record whose copy is below the target's end, or should be."""
    known = standing.offsets.downstream_end
    if known is None or standing.target_end >= known or standing.target_log_end < known:
        return standing.offsets.upstream_end
    return _exactly(standing.offsets.reverse(standing.target_end))


def _first_copied(standing: Standing) -> int:
    """Upstream offset of the first record whose copy is still there."""
    answer = standing.offsets.reverse(standing.target_start)
    return standing.offsets.upstream_start if isinstance(answer, Untranslatable) else answer


def _exactly(answer: int | Untranslatable) -> int:
    if isinstance(answer, int):
        return answer
    raise ValueError(f"the offset map does not reach: {answer.value}")
