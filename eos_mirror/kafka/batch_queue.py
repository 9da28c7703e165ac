"""
Sends batches of one partition that must not be merged, one after the other.

The client fills a batch with all records that wait for a partition, up to a size that applies to
all topics. Where a batch must be smaller, the next one is handed to the client only after this one
was acknowledged.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka import KafkaError, Message, Producer

from eos_mirror.core.records import DecodedRun, TopicPartition
from eos_mirror.core.suspects import Refusal
from eos_mirror.kafka.batching import send_one
from eos_mirror.kafka.errors import REFUSED

OnRecord = Callable[[KafkaError | None, Message], None]
"""Called with each acknowledgement and each refusal."""


@dataclass(slots=True)
class _Batch:
    """
    The batch of a partition that was last handed to the client.

    Attributes:
        offsets: Upstream offsets of its records.
        errors: Error of each refused or failed record, by its index.
    """

    number: int
    offsets: list[int] = field(default_factory=list)
    errors: dict[int, KafkaError] = field(default_factory=dict)

    def on_record(
        self, i: int, onward: OnRecord, error: KafkaError | None, message: Message
    ) -> None:
        """Note an error and pass the result on. A delivery callback: it never raises."""
        if error is not None:
            self.errors[i] = error
        onward(error, message)

    def refusal(self) -> Refusal | None:
        """Return what was refused; None without errors, or if any error is not a refusal."""
        codes = {error.code() for error in self.errors.values()}
        if not codes or not codes <= REFUSED:
            return None
        named: tuple[int, ...] = ()
        others = KafkaError._INVALID_DIFFERENT_RECORD  # noqa: SLF001 (public name)
        if others in codes:
            # the client distinguishes records only if the broker named more than one
            named = tuple(
                self.offsets[i] for i, e in sorted(self.errors.items()) if e.code() != others
            )
        cause = next((e for e in self.errors.values() if e.code() != others), None)
        cause = cause or next(iter(self.errors.values()))
        return Refusal(
            code=cause.name(),
            reason=cause.str(),
            first=self.offsets[0],
            end=self.offsets[-1] + 1,
            records=len(self.offsets),
            named=named,
        )


class Batches:
    """Numbered batches of any partitions. Used by one thread."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._last: dict[TopicPartition, _Batch] = {}
        self._waiting: dict[TopicPartition, deque[tuple[int, DecodedRun, OnRecord]]] = {}

    def clear(self) -> None:
        """Forget all batches: a transaction begins, or everything was acknowledged."""
        self._last.clear()
        self._waiting.clear()

    def add(
        self, run: DecodedRun, remote: TopicPartition, *, number: int, on_record: OnRecord
    ) -> None:
        """Hand over a run: now, or after all batches with lower numbers were acknowledged."""
        last = self._last.get(remote)
        if last is None:
            last = self._last[remote] = _Batch(number)
        if last.number == number:
            self._hand_over(run, remote, on_record)
        else:
            waiting = self._waiting.setdefault(remote, deque())
            waiting.append((number, run, on_record))

    def _hand_over(self, run: DecodedRun, remote: TopicPartition, on_record: OnRecord) -> None:
        batch = self._last[remote]
        for i in range(len(run.offsets)):
            callback = partial(batch.on_record, len(batch.offsets), on_record)
            batch.offsets.append(run.offsets[i])
            send_one(self._producer, remote, run=run, i=i, callback=callback)

    def hand_over_next(self) -> bool:
        """
        Hand over the next batch of each partition.

        Everything before it must be acknowledged or refused. A partition with a refused record
        gets no further batch.

        Returns:
            True if any batch was handed over.
        """
        ready = [remote for remote in self._waiting if not self._last[remote].errors]
        for remote in ready:
            waiting = self._waiting[remote]
            number = waiting[0][0]
            self._last[remote] = _Batch(number)
            while waiting and waiting[0][0] == number:
                _, run, on_record = waiting.popleft()
                self._hand_over(run, remote, on_record)
            if not waiting:
                del self._waiting[remote]
        return bool(ready)

    @property
    def refused(self) -> Mapping[TopicPartition, Refusal]:
        """Return the refusals by remote partition."""
        return dict(self._refused())

    def _refused(self) -> Iterator[tuple[TopicPartition, Refusal]]:
        for remote, batch in self._last.items():
            refusal = batch.refusal()
            if refusal is not None:
                yield remote, refusal
