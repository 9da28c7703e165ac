"""Finds where a flow continues copies that another program made. Writes nothing."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from eos_mirror.audit.examine import Reader
from eos_mirror.audit.transformed import as_mirrored
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.core.tail_match import TailMatch, match_tail
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.ranges import RangeReader
from eos_mirror.operate.origins import Origin
from eos_mirror.settings.clients import source_admin, target_admin
from eos_mirror.settings.model import FlowSettings

LOG_APPEND_TIME = 2
"""Type of a timestamp that the broker of the copy set: the copier did not write it."""

SPARSE = 4
"""Offsets that are read for each record that is wanted: transactions leave gaps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedPartition:
    """
    A source partition whose copy another program began.

    Attributes:
        by: Who: MirrorMaker 2, a group, or the file of its positions.
        stored: Next offset that it stored; None if it stored none.
        next_offset: Offset with which the copy continues; None if that is not certain.
        end: High watermark of the source partition.
        compared: So many records at the end of the copy are those before `next_offset`. 0: there
            was nothing to compare, and nothing can have been copied after `stored`.
        refusal: Why `next_offset` is not certain; empty if it is.
    """

    source: TopicPartition
    remote: TopicPartition
    by: str
    stored: int | None
    end: int
    next_offset: int | None = None
    compared: int = 0
    refusal: str = ""

    @property
    def to_come(self) -> int | None:
        """Offsets of the source that are left to copy; some may have no record."""
        return None if self.next_offset is None else self.end - self.next_offset


class _Record(NamedTuple):
    offset: int
    timestamp: tuple[int, int]
    content: tuple[Hashable, ...]

    def to_compare(self, *, timed: bool) -> Hashable:
        return (self.timestamp[1] if timed else None, self.content)


class _Log(NamedTuple):
    """Offsets of one partition: first, after the last visible record, and after the last one."""

    start: int
    stable: int
    end: int


class CopyEnds:
    """Compares the copies of one flow with their source partitions."""

    def __init__(self, settings: FlowSettings, origin: Origin, *, match_last: int) -> None:
        """
        Args:
            origin: Who made the copies.
            match_last: So many records at the end of a copy are compared at most.
        """
        source, target = source_admin(settings), target_admin(settings)
        self._origin, self._match_last = origin, match_last
        self._transforms = settings.transforms.chain
        # where the copies of one record end cannot be seen
        self._is_handled = settings.transforms.handler is not None and origin.mode is not None
        self._on_source = ClusterMetadata(source, side=Side.SOURCE)
        self._on_target = ClusterMetadata(target, side=Side.TARGET)
        self._source = RangeReader(source, side=Side.SOURCE)
        self._target = RangeReader(target, side=Side.TARGET)

    def ends(self, remotes: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the high watermark of each remote partition."""
        return self._on_target.high_watermarks(remotes)

    def find(self, pairs: Mapping[TopicPartition, TopicPartition]) -> list[CopiedPartition]:
        """
        Return where each partition continues.

        Args:
            pairs: Remote partition by source partition.

        Returns:
            One for each partition with a stored position or a copied record. Others begin as
            configured.

        Raises:
            RangeUnreadable: A record cannot be read.
            NotAuthorized: READ on a topic is missing.
            RestartTask: A cluster did not answer.
        """
        stored = self._origin.positions(list(pairs))
        sources = _logs(self._on_source, list(pairs))
        remotes = _logs(self._on_target, list(pairs.values()))
        found = []
        for source, remote in pairs.items():
            copied = self._last_records(remote, remotes[remote])
            if copied or source in stored:
                known = CopiedPartition(
                    source=source,
                    remote=remote,
                    by=self._origin.name,
                    stored=stored.get(source),
                    end=sources[source].end,
                )
                found.append(self._placed(known, sources[source], copied))
        return found

    def _placed(
        self, known: CopiedPartition, log: _Log, copied: Sequence[_Record]
    ) -> CopiedPartition:
        """Return the partition with its next offset, or with the reason why there is none."""
        if log.stable < log.end and self._origin.mode is None:  # ours copied what was committed
            return replace(known, refusal=_open(log))
        if known.stored is not None and known.stored > log.end:
            return replace(known, refusal=_too_short(known))
        if known.stored == log.end == log.start:  # all is expired, and all was copied
            return replace(known, next_offset=known.stored)
        if not copied or self._is_handled:
            return self._uncompared(known)
        match = self._match(known, log, copied)
        if match.next_offset is None:
            return replace(known, refusal=_unplaced(known, match))
        return replace(known, next_offset=match.next_offset, compared=match.compared)

    def _uncompared(self, known: CopiedPartition) -> CopiedPartition:
        """Return a partition that cannot be compared; the flow itself repeats a batch at most."""
        if self._origin.mode is not None and known.stored is not None:
            return replace(known, next_offset=known.stored)
        return replace(known, refusal=_nothing_copied(known))

    def _match(self, known: CopiedPartition, log: _Log, copied: Sequence[_Record]) -> TailMatch:
        at = log.start if known.stored is None else known.stored
        timed = copied[-1].timestamp[0] != LOG_APPEND_TIME
        first = max(log.start, at - SPARSE * self._match_last)
        reader = as_mirrored(self._source, self._transforms, remote_topic=known.remote.topic)
        records = _records(reader, known.source, first, log.stable)
        return match_tail(
            [one.to_compare(timed=timed) for one in copied],
            ((one.offset, one.to_compare(timed=timed)) for one in records),
            stored=at,
        )

    def _last_records(self, remote: TopicPartition, log: _Log) -> list[_Record]:
        """Return the last records of a copy, `match_last` of them or all."""
        span = SPARSE * self._match_last
        while True:
            first = max(log.start, log.stable - span)
            records = list(_records(self._target, remote, first, log.stable))
            if len(records) >= self._match_last or first == log.start:
                return records[-self._match_last :]
            span *= SPARSE


def _logs(
    cluster: ClusterMetadata, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, _Log]:
    starts, stable = cluster.starts(partitions), cluster.ends(partitions)
    ends = cluster.high_watermarks(partitions)
    return {p: _Log(starts[p], stable[p], ends[p]) for p in partitions}


def _records(reader: Reader, partition: TopicPartition, start: int, end: int) -> Iterator[_Record]:
    for some in reader.read(partition, start, end):
        columns = zip(
            some.offsets, some.timestamps, some.keys, some.values, some.headers, strict=True
        )
        for offset, timestamp, key, value, headers in columns:
            yield _Record(offset, timestamp, (key, value, tuple(headers or ())))


def _open(log: _Log) -> str:
    return (
        f"a transaction is open on the source, from offset {log.stable} on: adopt when it has ended"
    )


def _too_short(one: CopiedPartition) -> str:
    return (
        f"{one.by} stored {one.stored}, but {one.source} ends at {one.end}: it was created "
        f"again, or lost its end"
    )


def _nothing_copied(one: CopiedPartition) -> str:
    return (
        f"{one.remote} has no record to compare, so it is not known if more was copied than "
        f"{one.stored}, which {one.by} stored"
    )


def _unplaced(one: CopiedPartition, match: TailMatch) -> str:
    stored = "no position" if one.stored is None else str(one.stored)
    if not match.count:
        return (
            f"{one.by} stored {stored}, and the end of {one.remote} fits nowhere in "
            f"{one.source} after that: another client wrote it, it was compacted, or it has "
            f"records of aborted transactions"
        )
    places = ", ".join(map(str, match.places)) + (
        ", ..." if match.count > len(match.places) else ""
    )
    return (
        f"{one.by} stored {stored}, and the end of {one.remote} fits in {one.source} before "
        f"{match.count} offsets ({places}): compare more records with --match-last"
    )
