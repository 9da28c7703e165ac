"""Applies the transforms of a flow to source records that a proof compares with their copies."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from eos_mirror.audit.copy_counts import Tally
from eos_mirror.audit.examine import Reader
from eos_mirror.core.handlers import MessageHandler, handled
from eos_mirror.core.records import DecodedRun, TopicPartition
from eos_mirror.core.transforms import Chain, Kept, Transform
from eos_mirror.kafka.ranges import Columns

T = TypeVar("T")


def as_mirrored(
    reader: Reader,
    transforms: Sequence[Transform],
    *,
    remote_topic: str,
    handler: MessageHandler | None = None,
    tally: Tally | None = None,
) -> Reader:
    """
    Return a reader of a source topic that yields what is mirrored of it.

    Args:
        tally: Counts the records that have no copy, or several; None counts nothing.
    """
    chain = Chain(transforms, remote_topic=remote_topic)
    changed = reader if chain.is_empty else TransformedReader(reader, chain, tally)
    return changed if handler is None else HandledReader(changed, handler, tally)


class HandledReader:
    """
    Implements `examine.Reader` over a reader of the source: it yields the copies of each record.

    A record for which the handler fails is yielded as it is: it is in no copy.
    """

    def __init__(self, reader: Reader, handler: MessageHandler, tally: Tally | None = None) -> None:
        self._reader = reader
        self._handler = handler
        self._tally = tally

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[Columns]:
        """Yield the copies of the records in a range. See `kafka.ranges.RangeReader`."""
        for columns in self._reader.read(partition, start, end):
            kind = columns.timestamps[0][0]
            copied: list[int] = []
            for run in handled(self._handler, _run(partition, columns)):
                copied += run.offsets
                yield Columns(
                    offsets=run.offsets,
                    timestamps=[(kind, at) for at in run.timestamps],
                    keys=run.keys,
                    values=run.values,
                    headers=run.headers,
                )
            if self._tally is not None:
                self._tally.add(columns.offsets, copied)


def _run(partition: TopicPartition, columns: Columns) -> DecodedRun:
    return DecodedRun(
        partition=partition,
        offsets=columns.offsets,
        timestamps=[at for _, at in columns.timestamps],
        keys=columns.keys,
        values=columns.values,
        headers=columns.headers,
        leader_epoch=None,
        size_bytes=0,
    )


class TransformedReader:
    """Implements `examine.Reader` over a reader of the source: it yields what is mirrored."""

    def __init__(self, reader: Reader, chain: Chain, tally: Tally | None = None) -> None:
        self._reader = reader
        self._chain = chain
        self._tally = tally

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[Columns]:
        """Yield the records of a range that are mirrored. See `kafka.ranges.RangeReader`."""
        for columns in self._reader.read(partition, start, end):
            kept = self._chain.kept(columns.values, columns.headers)
            if len(kept.indices) == len(columns.offsets):
                yield replace(columns, headers=kept.headers)
                continue
            if self._tally is not None:
                self._tally.add(columns.offsets, _at(kept.indices, columns.offsets))
            if kept.indices:
                yield _selected(columns, kept)


def _selected(columns: Columns, kept: Kept) -> Columns:
    return Columns(
        offsets=_at(kept.indices, columns.offsets),
        timestamps=_at(kept.indices, columns.timestamps),
        keys=_at(kept.indices, columns.keys),
        values=_at(kept.indices, columns.values),
        headers=kept.headers,
    )


def _at(indices: Sequence[int], column: Sequence[T]) -> list[T]:
    return [column[index] for index in indices]
