"""
Puts records into batches for the target: whole batches of the source, or batches made here.

A batch of the source passes unchanged where its header allows it (`passing.py`). All other records
are decoded and fill new batches. Both kinds alternate freely: a partition's order is kept.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from eos_mirror.core.records import DecodedRun, RecordRun, TopicPartition, TopicRecord
from eos_mirror.wire.batches import CODEC_BITS, Batch
from eos_mirror.wire.builder import BatchBuilder, record_batch
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.codecs import CODECS
from eos_mirror.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, Refused
from eos_mirror.wire.fetched_run import FetchedRun
from eos_mirror.wire.partitioners import partition_of_key
from eos_mirror.wire.passing import Obstacle, PassLimits, obstacle, worth_merging

LEARN_WITHIN_S: Final = 10.0
PASSED: Final = "passed"
"""Counts records in batches of the source; the others are counted by their obstacle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """
    How records become batches.

    Attributes:
        compression: Codec of new batches; None: that of the batches which held the records.
        max_bytes, max_records: Size of a full new batch, before compression.
        partitioner: Chooses a partition for records without one, as the client library would.
    """

    compression: str | None = None
    max_bytes: int = 800_000
    max_records: int = 8_000
    partitioner: str = "consistent_random"


class Parcels(Protocol):
    """Where batches go."""

    def put(self, partition: TopicPartition, parcel: "Parcel") -> None:
        """See `outbox.Outbox`."""


@dataclass(slots=True)
class Parcel:
    """
    A batch for one partition, and where its records come from.

    Attributes:
        offsets: Upstream offset of each record; empty for records that are no copies.
        is_copy: It holds copies, whose place on the target is reported.
        alone: It is sent only when everything before it in its partition is acknowledged.
        sequence: Of its first record, once `is_stamped`; kept when the batch is sent again.
        is_void: A batch before it was refused, so the broker refuses this one, too.
    """

    batch: Batch
    offsets: Sequence[int]
    is_copy: bool = True
    alone: bool = False
    sequence: int = 0
    is_stamped: bool = False
    is_void: bool = False


class _Open:
    """The new batch of one partition that is being filled; `number` as in `Packer.add`."""

    __slots__ = ("builder", "codec", "number", "offsets")

    def __init__(self, builder: BatchBuilder, codec: int, number: int | None) -> None:
        self.builder = builder
        self.codec = codec
        self.number = number
        self.offsets: list[int] = []


class Packer:
    """
    Packs the records of one producer. Used by one thread.

    Invariant A: a partition has at most one batch being filled, and it holds the partition's last
    records.
    """

    def __init__(
        self,
        cluster: Cluster,
        parcels: Parcels,
        packing: Packing,
        *,
        limits: Callable[[str], PassLimits],
        written: dict[str, int],
    ) -> None:
        """
        Args:
            limits: Returns what a topic of the target accepts now.
            written: Counts the records, as `ports.Lane` does.
        """
        self._cluster = cluster
        self._limits = limits
        self._parcels = parcels
        self._packing = packing
        self._codec = None if packing.compression is None else CODECS[packing.compression]
        self._open: dict[TopicPartition, _Open] = {}
        self._written = written

    def add(self, run: RecordRun, remote: TopicPartition, *, number: int | None) -> None:
        """
        Add a run; all of it, or nothing after an error.

        Args:
            number: See `ports.TransactionalProducer.send`.

        Raises:
            UnreadableBatch: A batch must be decoded, and cannot be.
        """
        if number is not None:
            self._fill(run.decoded(), remote, number, Obstacle.LIMITED)
        elif not isinstance(run, FetchedRun):
            self._fill(run.decoded(), remote, None)
        elif worth_merging(run.batches):
            self._fill(run.decoded(), remote, None, Obstacle.SMALL)
        else:
            limits = self._limits(remote.topic)
            for part, reason in [self._decided(run, one, limits) for one in run.batches]:
                if isinstance(part, DecodedRun):
                    self._fill(part, remote, None, reason)
                else:
                    self._pass(part, remote)

    def _decided(
        self, run: FetchedRun, batch: Batch, limits: PassLimits
    ) -> tuple[Batch | DecodedRun, Obstacle]:
        """Return a batch that may be passed; otherwise its records, and why."""
        reason = obstacle(batch, batch.base_offset, limits)
        if reason is None and self._codec not in (None, batch.attributes & CODEC_BITS):
            reason = Obstacle.COMPRESSION
        if reason is None:
            return batch, Obstacle.CHANGED
        return FetchedRun(run.partition, [batch]).decoded(), reason

    def _pass(self, batch: Batch, remote: TopicPartition) -> None:
        self._finish(remote)
        self._count(PASSED, batch.count)
        offsets = range(batch.base_offset, batch.next_offset)
        self._parcels.put(remote, Parcel(batch, offsets))

    def _fill(
        self,
        run: DecodedRun,
        remote: TopicPartition,
        number: int | None,
        reason: Obstacle | None = None,
    ) -> None:
        self._count(run.why if reason is None else reason.value, run.count)
        codec, start = self._codec_of(run), 0
        while start < run.count:
            opened = self._open.get(remote)
            if opened is not None and (opened.number, opened.codec) != (number, codec):
                self._finish(remote)
                opened = None
            if opened is None:
                opened = self._open[remote] = _Open(self._builder(codec), codec, number)
            stop = opened.builder.add(run, start)
            opened.offsets += run.offsets[start:stop]
            start = stop
            if start < run.count:
                self._finish(remote)

    def _count(self, path: str, records: int) -> None:
        self._written[path] = self._written.get(path, 0) + records

    def _codec_of(self, run: DecodedRun) -> int:
        codec = run.codec if self._codec is None else self._codec
        return CODECS["none"] if codec is None else codec

    def _builder(self, codec: int) -> BatchBuilder:
        packing = self._packing
        return BatchBuilder(
            codec=codec, max_bytes=packing.max_bytes, max_records=packing.max_records
        )

    def _finish(self, remote: TopicPartition) -> None:
        """Queue the batch of a partition that is being filled, if there is one."""
        opened = self._open.pop(remote, None)
        if opened is not None:
            alone = opened.number is not None
            self._parcels.put(remote, Parcel(opened.builder.built(), opened.offsets, alone=alone))

    def add_to(self, topic: str, records: Sequence[TopicRecord]) -> None:
        """Queue records that are no copies, as a batch for each partition."""
        by_partition: dict[int, list[TopicRecord]] = {}
        for record in records:
            by_partition.setdefault(self._partition(topic, record), []).append(record)
        for number, some in by_partition.items():
            now_ms = time.time_ns() // 1_000_000
            batch = record_batch(some, timestamp_ms=now_ms, codec=self._codec or CODECS["none"])
            self._parcels.put(TopicPartition(topic, number), Parcel(batch, (), is_copy=False))

    def _partition(self, topic: str, record: TopicRecord) -> int:
        if record.partition is not None:
            return record.partition
        if topic not in self._cluster.topics:
            self._cluster.learn([topic], until=time.monotonic() + LEARN_WITHIN_S)
        if topic not in self._cluster.topics:
            raise Refused(UNKNOWN_TOPIC_OR_PARTITION, f"produce to {topic}")
        count = len(self._cluster.topics[topic].leaders)
        if record.key is None:
            return random.randrange(count)  # noqa: S311 (spreads records)
        return partition_of_key(record.key, count, self._packing.partitioner)

    def close(self) -> None:
        """Queue every batch that is being filled."""
        for remote in list(self._open):
            self._finish(remote)

    def clear(self) -> None:
        """Forget what was not queued."""
        self._open.clear()
