"""
The source side of a task: a static member of the source group.

Every record that the client cannot carry unchanged is found here, before it can reach the producer.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from operator import itemgetter, lt
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import DecodedRun, Headers, Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import (
    RecordRefused,
    RestartTask,
    SourceDataLost,
)
from eos_mirror.kafka.client import new_consumer
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.reconnecting import StallDetector
from eos_mirror.kafka.source_group import KafkaSourceGroup, client_partition
from eos_mirror.ports import Polled, RebalanceListener

CHUNK_RECORDS = 500
"""Small chunks stay in the processor's cache: 500 costs 8-28 % less CPU than 5,000."""

MUCH_RECORDS = 500
"""A reader this far from the end of a log is lagging. Less may be markers and aborted records."""

ON_ITS_WAY_S = 0.1
"""A fetch in flight returns records within this time; after that, the gap has another reason."""

SEEK_WITHIN_S = 5.0

TRANSIENT = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001 (the library's public names for local errors)
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
    }
)
"""The client recovers by itself. A deleted topic is detected by its id, not by these codes."""

WITHOUT_GROUP = TRANSIENT | {KafkaError.GROUP_AUTHORIZATION_FAILED}
"""A consumer asks for the coordinator of its group, even if it is no member."""

# every record that consume returns has these; the stubs allow None for messages in general
_topic_of = cast("Callable[[Message], str]", Message.topic)
_partition_of = cast("Callable[[Message], int]", Message.partition)
_offset_of = cast("Callable[[Message], int]", Message.offset)
_headers_of = cast("Callable[[Message], Headers | None]", Message.headers)
_timestamp_of = itemgetter(1)


class KafkaSource:
    """Implements `ports.Source` with one consumer that is never used by two threads."""

    def __init__(self, config: Mapping[str, Any], listener: RebalanceListener) -> None:
        """
        Args:
            config: Complete client configuration, forced settings included.
            listener: Called on each rebalance, from inside `poll` and `close`.
        """
        self._consumer = new_consumer(config)
        self._silence = StallDetector(self._consumer, config)
        self.group = KafkaSourceGroup(self._consumer, config["group.id"])
        self._listener = listener
        self._given: set[TopicPartition] = set()  # by the group
        self._reading: set[TopicPartition] = set()
        self._topics: list[str] = []
        self._read_to: dict[TopicPartition, tuple[int, float]] = {}

    def subscribe(self, topics: Sequence[str]) -> None:
        """See `ports.Source`."""
        again = list(topics) == self._topics
        self._topics = list(topics)
        with translated(f"subscribe to {len(topics)} topics", side=Side.SOURCE):
            if again or not topics:
                self._consumer.unsubscribe()
            if not topics:
                return  # librdkafka refuses an empty list
            self._consumer.subscribe(
                self._topics,
                on_assign=self._on_assign,
                on_revoke=self._on_revoke,
                on_lost=self._on_lost,
            )

    def _on_assign(self, consumer: Consumer, partitions: list[ClientPartition]) -> None:
        # Assign nothing: otherwise the client starts reading at a position of its own choice.
        consumer.incremental_assign([])
        self._given.update(_ours(partitions))
        self._listener.on_granted(_ours(partitions))

    def _on_revoke(self, consumer: Consumer, partitions: list[ClientPartition]) -> None:
        self._given.difference_update(_ours(partitions))
        self._listener.on_revoked(_ours(partitions))
        self._drop(consumer, partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[ClientPartition]) -> None:
        """
        Tell a membership that ended, which loses all partitions, from topics that are gone.

        librdkafka calls partitions lost, too, if their topic was deleted, or if one subscription
        drops their topic and adds another one. We are still a member then.
        """
        lost = _ours(partitions)
        self._given.difference_update(lost)
        if not self._given and any(partition.topic in self._topics for partition in lost):
            self._listener.on_lost(lost)
        else:
            self._listener.on_revoked(lost)
        self._drop(consumer, partitions)

    def _drop(self, consumer: Consumer, partitions: list[ClientPartition]) -> None:
        """Answer the rebalance once, with the partitions being read: the client refuses others."""
        reading = [p for p in _ours(partitions) if p in self._reading]
        self._forget(reading)
        consumer.incremental_unassign([ClientPartition(*p) for p in reading])

    def _forget(self, partitions: Sequence[TopicPartition]) -> None:
        self._reading.difference_update(partitions)
        for partition in partitions:
            self._read_to.pop(partition, None)

    def poll(self, *, wait: timedelta) -> Polled:
        """See `ports.Source`."""
        with translated("poll the source", side=Side.SOURCE):
            messages = self._consumer.consume(CHUNK_RECORDS, 0)
            if not messages and wait:
                messages = self._consumer.consume(1, wait.total_seconds())
                messages += self._consumer.consume(CHUNK_RECORDS - 1, 0) if messages else []
        polled = _polled(messages, harmless=TRANSIENT if self._topics else WITHOUT_GROUP)
        now = time.monotonic()
        for run in polled.runs:
            self._read_to[run.partition] = run.next_offset, now
        if polled.runs:
            self._silence.broken(now)
        elif (topic := self._any_topic) and self._silence.is_stalled(now, topic):
            raise RestartTask(
                "the source consumer finds no broker any more, and a new client does: the source "
                "had none for a moment"
            )
        polled.more_pending = not polled.runs and self._more_pending(now)
        return polled

    @property
    def _any_topic(self) -> str | None:
        """Return a topic that is subscribed or read; None if nothing is."""
        if self._topics:
            return self._topics[0]
        return next((one.topic for one in self._reading), None)

    def _more_pending(self, now: float) -> bool:
        """Return True if a partition that was just read has more, as its last fetch reported."""
        while self._read_to:
            partition, (next_offset, read_at) = next(iter(self._read_to.items()))
            if now - read_at < ON_ITS_WAY_S:
                end = self._known_end(partition)
                if end is not None and end - next_offset >= MUCH_RECORDS:
                    return True
            del self._read_to[partition]
        return False

    def _known_end(self, partition: TopicPartition) -> int | None:
        """Return the end that the client has cached; no broker is asked."""
        try:
            _, end = self._consumer.get_watermark_offsets(ClientPartition(*partition), cached=True)
        except KafkaException:
            return None
        return end

    def assign(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`."""
        with translated("assign", side=Side.SOURCE):
            self._consumer.incremental_assign(
                [client_partition(p, at) for p, at in positions.items()]
            )
            for p, at in positions.items():
                if at.leader_epoch is not None:
                    self._seek(client_partition(p, at))
        self._reading.update(positions)

    def _seek(self, at: ClientPartition) -> None:
        """
        Make the client compare leader epochs: it does so for a seek, but not for an assignment.

        Otherwise reading would continue silently in a log that lost its end and grew again.
        """
        deadline = time.monotonic() + SEEK_WITHIN_S
        while True:
            try:
                self._consumer.seek(at)
            except KafkaException as exc:
                started = exc.args[0].code() != KafkaError._STATE  # noqa: SLF001 (public name)
                if started or time.monotonic() > deadline:
                    raise
                time.sleep(0.001)  # the assignment has not begun yet
            else:
                return

    def unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.Source`."""
        reading = [p for p in partitions if p in self._reading]
        self._forget(reading)
        with translated("unassign", side=Side.SOURCE):
            self._consumer.incremental_unassign([ClientPartition(*p) for p in reading])

    def commit(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`. A non-fatal failure is ignored: these offsets are for people."""
        try:
            self._consumer.commit(
                offsets=[client_partition(p, at) for p, at in positions.items()], asynchronous=True
            )
        except KafkaException as exc:
            if exc.args[0].fatal():
                raise RestartTask(f"the source consumer is dead: {exc.args[0]}") from exc

    def close(self) -> None:
        """See `ports.Source`."""
        with translated("close the source consumer", side=Side.SOURCE):
            self._consumer.close()


def _ours(partitions: Iterable[ClientPartition]) -> list[TopicPartition]:
    return [TopicPartition(p.topic, p.partition) for p in partitions]


def _polled(messages: list[Message], *, harmless: Collection[int]) -> Polled:
    """
    Sort a chunk into runs, ends and faults, with one run for each partition.

    Records that arrive one by one alternate between partitions, and a run costs as much as many
    records.

    Raises:
        RestartTask: The consumer is dead.
        NotAuthorized: A right was withdrawn.
    """
    polled = Polled()
    if any(map(Message.error, messages)):
        messages = _without_events(messages, polled, harmless)
    where = zip(map(_topic_of, messages), map(_partition_of, messages), strict=True)
    read: dict[tuple[str, int], list[Message]] = {}
    at = 0
    for one, stretch in groupby(where):
        end = at + len(list(stretch))
        read.setdefault(one, []).extend(messages[at:end])
        at = end
    for one, theirs in read.items():
        _add_run(TopicPartition(*one), theirs, polled)
    return polled


def _without_events(
    messages: list[Message], polled: Polled, harmless: Collection[int]
) -> list[Message]:
    """
    Return the records; put the events into `polled`.

    Records after a fault in their partition are dropped: after a corrupt batch the client continues
    with the next one.
    """
    records: list[Message] = []
    for message in messages:
        error = message.error()
        if error is not None:
            if error.code() not in harmless:
                _note_event(message, error, polled)
        elif (_topic_of(message), _partition_of(message)) not in polled.faults:
            records.append(message)
    return records


def _add_run(partition: TopicPartition, messages: list[Message], polled: Polled) -> None:
    """Add a run, cut before the first record that cannot be carried unchanged."""
    offsets = list(map(_offset_of, messages))
    timestamps = list(map(_timestamp_of, map(Message.timestamp, messages)))
    headers: list[Headers | None] = []
    good = len(messages)
    if 0 in timestamps:
        good = timestamps.index(0)
        polled.faults[partition] = _refused(
            partition, offsets[good], "timestamp 0 cannot be produced by this client"
        )
    try:
        # when an element fails, extend keeps the ones before it: its length locates the fault
        headers.extend(map(_headers_of, messages[:good]))
    except (SystemError, UnicodeDecodeError):
        good = len(headers)
        polled.faults[partition] = _refused(
            partition, offsets[good], "a header key is not valid UTF-8"
        )
    if not all(map(lt, offsets, offsets[1:])):
        raise RestartTask(f"{partition}: the client returned offsets out of order")
    if good == 0:
        return
    kept = messages[:good]
    polled.runs.append(
        DecodedRun(
            partition=partition,
            offsets=offsets[:good],
            timestamps=timestamps[:good],
            keys=list(map(Message.key, kept)),
            values=list(map(Message.value, kept)),
            headers=headers,
            leader_epoch=kept[-1].leader_epoch(),
            size_bytes=sum(map(len, kept)),
        )
    )


def _refused(partition: TopicPartition, offset: int, why: str) -> RecordRefused:
    return RecordRefused(
        f"{partition} next_offset={offset}: {why}. Rewrite the record on the source, or "
        f"exclude the topic."
    )


def _note_event(event: Message, error: KafkaError, polled: Polled) -> None:
    topic, number = event.topic(), event.partition()
    code = error.code()
    if topic is None or number is None or number < 0:
        raise as_mirror_error(error, "read the source", side=Side.SOURCE)
    partition = TopicPartition(topic, number)
    if code == KafkaError._PARTITION_EOF:  # noqa: SLF001
        polled.ends[partition] = _offset_of(event)
    elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):  # noqa: SLF001
        polled.faults[partition] = SourceDataLost(
            f"{partition} next_offset={event.offset()}: not in the log ({error.str()})"
        )
    elif code == KafkaError._LOG_TRUNCATION:  # noqa: SLF001
        polled.faults[partition] = SourceDataLost(f"{partition}: source truncated: {error.str()}")
    elif code == KafkaError._BAD_MSG:  # noqa: SLF001
        polled.faults[partition] = SourceDataLost(f"{partition}: corrupt batch: {error.str()}")
    else:
        raise as_mirror_error(error, f"read {partition}", side=Side.SOURCE)
