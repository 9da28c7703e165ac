"""Reads internal topics, ours and MirrorMaker 2's: whole, or only what is new."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple, cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.side import Side
from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.client import new_consumer
from eos_mirror.kafka.deadline import ANSWER, Deadline
from eos_mirror.kafka.errors import DENIED, as_mirror_error, translated

WITHIN: Final = timedelta(seconds=60)
"""For reading a topic to its end."""

ELECTED: Final = timedelta(seconds=10)
"""For a partition without a leader to get one."""

READER: Final = {
    "allow.auto.create.topics": False,
    "auto.offset.reset": "earliest",  # what is gone was compacted
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 10,  # the broker reports the end after this; 500 by default
    "isolation.level": "read_committed",
}

HARMLESS: Final = frozenset({KafkaError.GROUP_AUTHORIZATION_FAILED})
"""A consumer needs a group id, and its client asks for that group. Nothing is read from it."""


class Update(NamedTuple):
    """One record."""

    key: bytes | None
    value: bytes | None


class TopicReader:
    """
    Reads one topic, read_committed. Each reading returns what was written since the last one.

    It connects for each reading: they are seconds or minutes apart. One thread uses it.
    """

    def __init__(self, config: Mapping[str, Any], topic: str, *, group: str) -> None:
        """
        Args:
            config: Connection and security.
            topic: If it does not exist, there are no updates.
            group: One that this principal may describe. It is never joined, nor committed to.
        """
        self._config = {**config, **READER, "group.id": group}
        self._topic = topic
        self._next_offsets: dict[int, int] = {}

    def read_to(self, partition: int) -> int:
        """Return where reading stopped in a partition; 0 before its first read."""
        return self._next_offsets.get(partition, 0)

    def rewind(self) -> None:
        """Read from the beginning again."""
        self._next_offsets.clear()

    def updates(self, *, within: timedelta = WITHIN, partial: bool = False) -> Iterator[Update]:
        """
        Read to the current end of every partition; records of one partition come in order.

        Args:
            partial: Stop without an error when time is up.

        Raises:
            TargetUnavailable: The cluster did not answer, or the end was not reached in time.
            NotAuthorized: A right on the topic is missing.
        """
        deadline = Deadline(within)
        consumer = new_consumer(self._config)
        try:
            unread = self._assign(consumer, deadline)
            leaderless = _Leaderless(consumer, self._topic)
            while unread:
                if leaderless.stay(unread) or deadline.is_over:
                    if partial:
                        return
                    names = leaderless.partitions & unread
                    raise TargetUnavailable(_unread(self._topic, names, within))
                for message in ready_messages(consumer):
                    if self._is_record(message):
                        self._next_offsets[_partition_of(message)] = _offset_of(message) + 1
                        yield Update(message.key(), message.value())
                    elif is_end(message):
                        self._next_offsets[_partition_of(message)] = _offset_of(message)
                        unread.discard(_partition_of(message))
        finally:
            consumer.close()

    def _assign(self, consumer: Consumer, deadline: Deadline) -> set[int]:
        """Return the partitions to read; none without the topic."""
        with translated(f"read {self._topic}"):
            found = consumer.list_topics(self._topic, deadline.left_s(at_most=ANSWER))
            known = found.topics[self._topic]
            if known.error is not None:
                if known.error.code() in DENIED:
                    raise as_mirror_error(known.error, f"read {self._topic}", side=Side.TARGET)
                return set()
            consumer.assign(
                [
                    ClientPartition(self._topic, p, self._next_offsets.get(p, OFFSET_BEGINNING))
                    for p in known.partitions
                ]
            )
            return set(known.partitions)

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.code() not in HARMLESS and not is_end(message):
            raise as_mirror_error(error, f"read {self._topic}", side=Side.TARGET)
        return False


class _Leaderless:
    """Which partitions have no leader. A leader may also die while its partition is read."""

    def __init__(self, consumer: Consumer, topic: str) -> None:
        self._consumer = consumer
        self._topic = topic
        self._next = Deadline(ELECTED / 2)
        self.partitions: set[int] = set()

    def stay(self, unread: set[int]) -> bool:
        """Ask twice in `ELECTED`. Return whether one of these had no leader both times."""
        if not self._next.is_over:
            return False
        before = self.partitions & unread
        self.partitions = self._ask()
        self._next = Deadline(ELECTED / 2)
        return bool(before & self.partitions)

    def _ask(self) -> set[int]:
        try:
            found = self._consumer.list_topics(self._topic, (ELECTED / 2).total_seconds())
        except KafkaException:
            return set()  # no answer: reading continues until its time is up
        known = found.topics[self._topic].partitions
        return {partition for partition, one in known.items() if one.leader < 0}


def _unread(topic: str, leaderless: set[int], within: timedelta) -> str:
    if not leaderless:
        return f"{topic}: not read to its end in {within}"
    names = ", ".join(f"{topic}-{partition}" for partition in sorted(leaderless))
    return f"{names} has no leader: start the brokers that have its replicas"


def ready_messages(consumer: Consumer) -> list[Message]:
    """What was fetched already, or else the next message; waits 0.2 s at most."""
    # an event, such as the end of a partition, does not end a wait for more messages
    return consumer.consume(1000, 0) or consumer.consume(1, 0.2)


def is_end(message: Message) -> bool:
    """Whether this is the event that a partition was read to its end."""
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001 (public)


def read_log(
    config: Mapping[str, Any], topic: str, *, group: str
) -> list[tuple[str, bytes | None]]:
    """
    Read every record of a topic whose key is text, as (key, value). Others were not written by us.

    Args and errors: see `TopicReader`.
    """
    found = TopicReader(config, topic, group=group).updates()
    return [(key, one.value) for one in found if (key := _text(one.key)) is not None]


def read_compacted(config: Mapping[str, Any], topic: str, *, group: str) -> dict[str, bytes]:
    """
    Read the newest value of every key of a topic; a tombstone removes its key.

    Args and errors: see `TopicReader`.
    """
    values: dict[str, bytes] = {}
    for key, value in read_log(config, topic, group=group):
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
    return values


def topic_names(config: Mapping[str, Any], *, group: str) -> set[str]:
    """
    Read the names of all topics that this principal may describe.

    Raises:
        TargetUnavailable: The cluster did not answer.
    """
    consumer = new_consumer({**config, **READER, "group.id": group})
    try:
        with translated("list topics"):
            return set(consumer.list_topics(timeout=ANSWER.total_seconds()).topics)
    finally:
        consumer.close()


def _text(key: bytes | None) -> str | None:
    try:
        return None if key is None else key.decode()
    except UnicodeDecodeError:
        return None


def _partition_of(message: Message) -> int:
    return cast("int", message.partition())


def _offset_of(message: Message) -> int:
    return cast("int", message.offset())
