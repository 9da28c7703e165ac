"""Reads a range of one partition from its first to its last visible record, for audits."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import Headers, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import RangeUnreadable
from eos_mirror.kafka.client import new_consumer
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.source import TRANSIENT

CHUNK_RECORDS = 500
WAIT_S = 0.03
"""Waits are short, because an event, such as the end of a log, does not end them."""

SILENT_S = 30.0
"""After this long without a record and without the end of the log, reading fails."""

READER = {
    "group.id": "eos-mirror.reader",  # a consumer must have one; nothing joins it or commits
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "check.crcs": "true",
    "allow.auto.create.topics": "false",
    "fetch.queue.backoff.ms": "5",
    "fetch.wait.max.ms": "10",  # the broker reports the end of a log after this
    "queued.min.messages": "20000",
    "queued.max.messages.kbytes": "16384",  # what is fetched beyond a range is wasted
}

# every record that consume returns has these; the stubs allow None for messages in general
_offset_of = cast("Callable[[Message], int]", Message.offset)
_headers_of = cast("Callable[[Message], Headers | None]", Message.headers)
_timestamp_of = cast("Callable[[Message], tuple[int, int]]", Message.timestamp)


@dataclass(slots=True, kw_only=True)
class Columns:
    """
    Adjacent records of one partition, in offset order, as parallel columns.

    Attributes:
        timestamps: Timestamp type (Kafka's number) and milliseconds since the epoch.
        headers: None for a record without headers.
    """

    offsets: Sequence[int]
    timestamps: Sequence[tuple[int, int]]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers | None]


class RangeReader:
    """Reads one range after the other with one consumer."""

    def __init__(self, config: Mapping[str, Any], *, side: Side) -> None:
        """
        Args:
            config: Connection and security.
            side: Which cluster it is; selects SourceUnavailable or TargetUnavailable.
        """
        self._consumer = new_consumer({**config, **READER})
        self._side = side

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[Columns]:
        """
        Read every visible record with start <= offset < end.

        Args:
            end: Not after the last stable offset.

        Raises:
            RangeUnreadable: A part of the range was deleted, is corrupt, or cannot be read by this
                client.
            RestartTask: The cluster did not answer (SourceUnavailable or TargetUnavailable).
        """
        if start >= end:
            return
        with translated(f"read {partition}", side=self._side):
            self._consumer.assign([ClientPartition(*partition, start)])
        read_at = time.monotonic()
        last, is_read = start - 1, False
        while not is_read:
            most = min(CHUNK_RECORDS, end - last)
            with translated(f"read {partition}", side=self._side):
                messages = self._consumer.consume(most, WAIT_S)
            if messages:
                read_at = time.monotonic()
            elif time.monotonic() - read_at > SILENT_S:
                raise RangeUnreadable(f"{partition}: no record after {last} for {SILENT_S:.0f} s")
            messages, is_read = self._without_events(partition, messages, end)
            if not messages:
                continue
            last = _offset_of(messages[-1])
            if last >= end - 1:
                is_read = True
                messages = [one for one in messages if _offset_of(one) < end]
            if messages:
                yield _columns(partition, messages)
                read_at = time.monotonic()  # the caller may have waited for the other log

    def _without_events(
        self, partition: TopicPartition, messages: list[Message], end: int
    ) -> tuple[list[Message], bool]:
        """Return the records, and whether the log has ended after the range."""
        if not any(map(Message.error, messages)):
            return messages, False
        records, is_read = [], False
        for message in messages:
            error = message.error()
            if error is None:
                records.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                is_read = is_read or _offset_of(message) >= end
            elif error.code() not in TRANSIENT:
                raise self._fault(partition, error)
        return records, is_read

    def _fault(self, partition: TopicPartition, error: KafkaError) -> Exception:
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):  # noqa: SLF001
            return RangeUnreadable(f"{partition}: no longer in the log ({error.str()})")
        if error.code() == KafkaError._BAD_MSG:  # noqa: SLF001
            return RangeUnreadable(f"{partition}: a corrupt batch ({error.str()})")
        return as_mirror_error(error, f"read {partition}", side=self._side)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def _columns(partition: TopicPartition, messages: list[Message]) -> Columns:
    try:
        headers = list(map(_headers_of, messages))
    except (SystemError, UnicodeDecodeError) as exc:
        where = f"{partition}: between {_offset_of(messages[0])} and {_offset_of(messages[-1])}"
        raise RangeUnreadable(f"{where} a header key is not valid UTF-8") from exc
    return Columns(
        offsets=list(map(_offset_of, messages)),
        timestamps=list(map(_timestamp_of, messages)),
        keys=list(map(Message.key, messages)),
        values=list(map(Message.value, messages)),
        headers=headers,
    )
