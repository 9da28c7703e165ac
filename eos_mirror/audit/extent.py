"""
Determines which part of a partition can be compared now, and which no longer can.

Both logs change: retention deletes their beginnings, and the mirror appends at their ends. So the
ends are frozen first, and records deleted by retention are reported as expired, not as lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from eos_mirror.audit.compacted import Compaction
from eos_mirror.audit.ranges import Range
from eos_mirror.core.offset_map import OffsetMap, Untranslatable
from eos_mirror.core.records import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetWindow:
    """
    The records to compare: start <= upstream offset < end.

    Attributes:
        end: None means no limit.
    """

    start: int = 0
    end: int | None = None

    def clip(self, offset: int) -> int:
        """Return the nearest offset of the window, or its end."""
        offset = max(offset, self.start)
        return offset if self.end is None else min(offset, max(self.start, self.end))


class Cause(StrEnum):
    """Why a range is not compared."""

    EXPIRED_ON_SOURCE = "expired on the source"
    EXPIRED_ON_TARGET = "expired on the target"
    LOST_ON_SOURCE = "lost on the source"
    """Mirrored, but now after the end of the source log: the log was truncated."""

    OPEN_TRANSACTION = "behind an open transaction of the source"
    UNREADABLE = "unreadable"
    NOT_SAMPLED = "not in the sample"

    @property
    def is_harmless(self) -> bool:
        """Return whether retention causes this, or the user asked for it."""
        return self not in (Cause.LOST_ON_SOURCE, Cause.UNREADABLE, Cause.OPEN_TRANSACTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unproven:
    """
    Records with start <= upstream offset < end that were not compared.

    Attributes:
        partition: Partition of the source.
        reason: Details of the cause; may be empty.
    """

    partition: TopicPartition
    start: int
    end: int
    cause: Cause
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSnapshot:
    """
    A snapshot of one partition on both clusters.

    Attributes:
        source_start: Current start of its log.
        target_end: Last stable offset, requested *before* the map was read: so the map knows
            every transaction of ours below it.
        offsets: The offset map as committed with the shadow offset.
        timestamps: False if the remote topic stamps records with its own clock.
        source_log_end, target_log_end: Last stable offsets, requested after the map was read: so
            everything that the map knows must be below them, or it was lost.
        compaction: None if neither side is compacted.
        window: The part to compare.
        source_topic_id: Identifies earlier proofs of the topic; so does `target_topic_id`.
        hidden: What an open transaction of the source hides; None if nothing.
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
    window: OffsetWindow = OffsetWindow()
    source_topic_id: str = ""
    target_topic_id: str = ""
    hidden: Unproven | None = None

    @property
    def topics(self) -> str:
        """Return both topic ids: a topic that was created again is another topic."""
        return f"{self.source_topic_id} {self.target_topic_id}"


def unreadable(where: Range, reason: str) -> Unproven:
    """Report a whole range as unreadable."""
    return Unproven(
        partition=where.source,
        start=where.start,
        end=where.end,
        cause=Cause.UNREADABLE,
        reason=reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The range to compare, and what cannot be compared. Together: all that was asked for."""

    whole: Range
    unproven: Sequence[Unproven]


def plan_extent(snapshot: PartitionSnapshot) -> Extent:
    """
    Plan the range to compare from a snapshot.

    A target record that the map does not know, before our first or after our last record, is
    inside the range, so that it is found. So is what the target has lost at its end. Records of
    transactions that were committed after the target's end was requested are outside.

    Raises:
        ValueError: The map does not know the start of the remaining records.
    """
    offsets = snapshot.offsets
    first, frozen = offsets.upstream_start, _upstream_end(snapshot)
    end = max(first, min(frozen, snapshot.source_log_end))
    on_source = min(max(first, snapshot.source_start), end)
    on_target = min(max(on_source, _first_copied(snapshot)), end)
    unproven = [
        Unproven(partition=snapshot.source, start=start, end=until, cause=cause)
        for start, until, cause in (
            (first, on_source, Cause.EXPIRED_ON_SOURCE),
            (on_source, on_target, Cause.EXPIRED_ON_TARGET),
            (end, frozen, Cause.LOST_ON_SOURCE),
        )
        if start < until
    ]
    if snapshot.hidden is not None:
        unproven.append(snapshot.hidden)
    target_start, target_end = snapshot.target_start, snapshot.target_end
    if end < frozen:
        target_end = min(target_end, offsets.copy_of(end))
    if on_target > first:
        target_start = max(target_start, _exactly(offsets.translate(on_target)))
    whole = Range(
        source=snapshot.source,
        start=on_target,
        end=end,
        target=snapshot.target,
        target_start=min(target_start, target_end),
        target_end=target_end,
        timestamps=snapshot.timestamps,
    )
    return _within(snapshot, Extent(whole=whole, unproven=unproven))


def _within(snapshot: PartitionSnapshot, extent: Extent) -> Extent:
    """Clip an extent to the window."""
    window, whole = snapshot.window, extent.whole

    def copy_of(upstream: int) -> int:
        """Return where a reader of the copy resumes; copies after its end were lost there."""
        if upstream == whole.end:
            return whole.target_end
        return min(_exactly(snapshot.offsets.translate(upstream)), whole.target_end)

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
    Cut a range after retention has passed its start; return what remains and what expired.

    Args:
        extent: The extent of the partition, planned again.
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


def _upstream_end(snapshot: PartitionSnapshot) -> int:
    """Return the end after the last record whose copy is, or should be, below the target's end."""
    known = snapshot.offsets.downstream_end
    if known is None or snapshot.target_end >= known or snapshot.target_log_end < known:
        return snapshot.offsets.upstream_end
    return _exactly(snapshot.offsets.reverse(snapshot.target_end))


def _first_copied(snapshot: PartitionSnapshot) -> int:
    """
    Return the upstream offset of the first record whose copy still exists.

    If no copy has expired, that is the start of the map: records before the first copy have none.
    """
    offsets = snapshot.offsets
    if snapshot.target_start <= offsets.copy_of(offsets.upstream_start):
        return offsets.upstream_start
    answer = offsets.reverse(snapshot.target_start)
    return offsets.upstream_start if isinstance(answer, Untranslatable) else answer


def _exactly(answer: int | Untranslatable) -> int:
    if isinstance(answer, int):
        return answer
    raise ValueError(f"the offset map does not cover the offset: {answer.value}")
