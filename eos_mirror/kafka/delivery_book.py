"""Offsets that the records of one partition got, as delivery callbacks report them."""

from confluent_kafka import KafkaError, Message

from eos_mirror.core.records import TopicPartition


class DeliveryBook:
    """
    Offsets of the first and the last record that a transaction sent to one partition.

    librdkafka calls the `on_` methods, from inside `poll` and `flush`. They never raise.

    Attributes:
        count: Records sent.
        first, last: Their offsets; None if unknown: not acknowledged, refused, or acknowledged
            without an offset.
        error: Of the record that was refused last.
    """

    __slots__ = ("count", "error", "first", "is_begun", "last", "remote")

    def __init__(self, remote: TopicPartition) -> None:
        self.remote = remote
        self.count = 0
        self.is_begun = False
        self.first: int | None = None
        self.last: int | None = None
        self.error: KafkaError | None = None

    def __str__(self) -> str:
        return f"produce to {self.remote}"

    def on_first(self, error: KafkaError | None, message: Message) -> None:
        self.first = self._offset(error, message)

    def on_last(self, error: KafkaError | None, message: Message) -> None:
        self.last = self._offset(error, message)

    def on_only(self, error: KafkaError | None, message: Message) -> None:
        self.first = self.last = self._offset(error, message)

    def on_any(self, error: KafkaError | None, message: Message) -> None:
        """Called for every record, in order."""
        offset = self._offset(error, message)
        if not self.is_begun:
            self.first, self.is_begun = offset, True
        self.last = offset

    def _offset(self, error: KafkaError | None, message: Message) -> int | None:
        if error is not None:
            self.error = error
            return None
        offset = message.offset()
        # a retry that the broker had already stored is acknowledged without an offset
        return offset if offset is not None and offset >= 0 else None
