"""
One incarnation: a transactional producer that begins and commits, and never aborts.

A transaction that failed ends with its process; the coordinator or the next claimer aborts it.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.core.suspects import Refusal
from eos_mirror.errors import (
    CommitOutcomeUnknown,
    RefusedByTarget,
    RestartTask,
    TargetUnavailable,
)
from eos_mirror.kafka.batches import Batches
from eos_mirror.kafka.errors import REFUSED, as_mirror_error, translated
from eos_mirror.kafka.sending import LOOK_EVERY_S, Backlog, send_one, send_stretch
from eos_mirror.ports import Committed, Delivered, ShadowCommit

INIT_TIMEOUT_S = 30.0


class _Book:
    """Where the first and the last record of one partition landed. Its methods never raise."""

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
        """Of every record, in order."""
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


class _ConnectionWatch(logging.Handler):
    """
    Notices broken connections, which the client repairs in silence.

    It sends a request again that was in flight, 25 ms later, and the late first copy of an EndTxn
    would commit the next transaction (KAFKA-17754). Its log is the only trace: the line is
    written before the resend, so it is there before the commit returns. A second line like it
    would be left out for 30 s; by then the incarnation is gone.
    """

    LEVEL = 6
    """librdkafka's level of the line, when the peer closed without an error."""

    def __init__(self) -> None:
        super().__init__()
        self.was_cut = False

    def logger(self) -> logging.Logger:
        """A logger that nobody else knows."""
        logger = logging.Logger("librdkafka")  # noqa: LOG001 (private on purpose)
        logger.addHandler(self)
        return logger

    def emit(self, record: logging.LogRecord) -> None:
        """The connection of the first contact carries no transactional request."""
        text = record.getMessage()
        if text.startswith("FAIL") and "/bootstrap]" not in text:
            self.was_cut = True


class _Rest:
    """
    How long to wait after a commit until records may be handed to the client again.

    Its markers are still being written when a commit is answered. Whoever asks to add a partition
    meanwhile is refused (CONCURRENT_TRANSACTIONS), and the client asks again only 20 ms later:
    longer than a short transaction takes. After a short one, the moment of rest is such that one
    in a hundred is refused.

    A long one is still being filled by then, and loses no time. But what it was handed lies in
    memory until the client asks again, and then goes in one heap: of the processor time of two
    tasks on two cores, 7 %. The rest before it is fixed, as nothing tells whether it was refused.

    A broker that stood still looks like a refusal. With one in two hundred, what is learned from a
    broker that has just started was forgotten only after a minute, and everything came later.

    What a transaction costs the brokers hardly depends on what is in it. So a light load is not
    cut into more of them than shorten the way of a record. This alone is a rest, mostly; but not
    behind a transaction that took longer, because it was refused or a broker stood still. So
    nothing is learned about a rest that was longer anyway, and it is there when it is needed.
    Behind a slow commit markers are late, too.
    """

    REFUSED_S = 0.02
    PERIOD_S = 0.009
    FIRST_S, LONGEST_S = 0.004, 0.01
    LONGER_S, SHORTER_S = 0.0005, 0.000005
    AFTER_LONG_S = 0.006

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._rest_s = self.FIRST_S
        self._began_at = self._over_at = 0.0
        self.was_short = self._was_tried = False

    @property
    def left_s(self) -> float:
        """Of the rest; not above 0 when it is over."""
        return self._over_at - self._now()

    def end(self) -> None:
        """Records are handed over from now on."""
        self._began_at = self._now()

    def learn(self, *, flushing_since: float) -> None:
        """After a flush: with a refusal it lasted longer."""
        now = self._now()
        self.was_short = flushing_since - self._began_at < self.REFUSED_S
        if not self.was_short:
            return
        if now - flushing_since >= self.REFUSED_S:
            self._rest_s = min(self._rest_s + self.LONGER_S, self.LONGEST_S)
        elif self._was_tried:
            self._rest_s = max(self._rest_s - self.SHORTER_S, 0.0)

    def begin(self, *, took_s: float) -> None:
        """Behind a commit that took so long."""
        now = self._now()
        if self.was_short:
            late_s = min(took_s, self.LONGEST_S)
            anyway_until = max(now + late_s, self._began_at + self.PERIOD_S)
            self._over_at = max(now + self._rest_s, anyway_until)
            self._was_tried = self._over_at > anyway_until
        else:
            self._over_at = now + self.AFTER_LONG_S


class KafkaProducer:
    """Implements `ports.TransactionalProducer` with librdkafka (transaction protocol TV1)."""

    def __init__(
        self, config: Mapping[str, Any], transactional_id: str, *, group: object, map_topic: str
    ) -> None:
        """
        Initialise an incarnation.

        Args:
            config: Complete client configuration but for the transactional id.
            transactional_id: Never used before.
            group: Metadata of the member-less shadow group.
            map_topic: Where `send_map` writes.

        Raises:
            RestartTask: The target did not let us in, by class.
            NotAuthorized: Write on the transactional id is missing.
        """
        self._connection = _ConnectionWatch()
        self._producer = Producer(
            {
                **config,
                "transactional.id": transactional_id,
                "log_level": _ConnectionWatch.LEVEL,
                "log.connection.close": True,
            },
            logger=self._connection.logger(),
        )
        self._group = group
        self._map_topic = map_topic
        self._books: dict[TopicPartition, _Book] = {}
        self._batches = Batches(self._producer)
        self._backlog = Backlog(self._producer, config)
        self._rest = _Rest()
        self._held: list[tuple[RecordRun, TopicPartition, int | None]] | None = []
        with translated(f"initialise {transactional_id}"):
            # metadata first: init is 2 ms after it and 50-500 ms without
            self._producer.list_topics(timeout=INIT_TIMEOUT_S)
            self._producer.init_transactions(INIT_TIMEOUT_S)

    def begin(self) -> None:
        """See `ports.TransactionalProducer`."""
        self._books.clear()
        self._batches.clear()
        self._held = []
        with translated("begin"):
            self._producer.begin_transaction()
        if self._rest.was_short:
            self._end_rest()  # what arrives meanwhile still goes into this transaction

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """See `ports.TransactionalProducer`. Held back while the last commit's rest lasts."""
        if self._held is not None:
            self._held.append((run, remote, batch))
            if self._rest.left_s > 0:
                return
            self._end_rest()
        else:
            self._hand_over(run, remote, batch)

    def _end_rest(self) -> None:
        """Once in a transaction: hand over what was held back, after what is left of the rest."""
        if self._held is None:
            return
        held, self._held = self._held, None
        left_s = self._rest.left_s
        if left_s > 0:
            time.sleep(left_s)
        self._rest.end()
        for run, remote, batch in held:
            self._hand_over(run, remote, batch)

    def _hand_over(self, run: RecordRun, remote: TopicPartition, batch: int | None) -> None:
        """Only the ends of a run get a delivery callback, unless it has a batch of its own."""
        book = self._books.get(remote)
        if book is None:
            book = self._books[remote] = _Book(remote)
        last = len(run.offsets) - 1
        with self._blaming(book):
            if batch is not None:
                self._batches.add(run, remote, number=batch, on_record=book.on_any)
                book.count += last + 1
                self._backlog.add_beside(last + 1)
                return
            if book.count == 0:
                on_first = book.on_first if last else book.on_only
                send_one(self._producer, remote, run=run, i=0, callback=on_first)
                send_stretch(self._producer, remote, run=run, start=1, end=last)
            else:
                send_stretch(self._producer, remote, run=run, start=0, end=last)
            if last or book.count:
                send_one(self._producer, remote, run=run, i=last, callback=book.on_last)
            self._producer.poll(0)
            book.count += last + 1
            self._backlog.add(run, remote)

    def send_map(self, entries: Mapping[str, bytes | None]) -> None:
        """See `ports.TransactionalProducer`."""
        self._end_rest()
        with translated(f"produce to {self._map_topic}"):
            for key, value in entries.items():
                self._producer.produce(self._map_topic, value, key.encode())
        self._backlog.add_beside(len(entries))

    def flush(self, *, within: timedelta) -> Mapping[TopicPartition, Delivered]:
        """See `ports.TransactionalProducer`."""
        self._end_rest()
        started = time.monotonic()
        deadline = started + within.total_seconds()
        with self._blaming("flush"):
            self._backlog.settle(until=deadline)
        self._acknowledge(deadline, within)
        self._rest.learn(flushing_since=started)
        while self._batches.hand_over_next():
            self._acknowledge(deadline, within)
        return {
            remote: Delivered(first=book.first, last=book.last, count=book.count)
            for remote, book in self._books.items()
        }

    def _acknowledge(self, deadline: float, within: timedelta) -> None:
        """Wait until what was handed over is acknowledged, or raise what was refused of it."""
        left = 1
        while left and time.monotonic() < deadline:
            with self._blaming("flush"):
                left = self._producer.flush(min(LOOK_EVERY_S, within.total_seconds()))
            self._raise_refused()
            if left:
                self._raise_cause("flush")
        if left:
            raise TargetUnavailable(f"flush: {left} records not acknowledged in {within}")

    def _raise_refused(self) -> None:
        """What was not acknowledged spoils the transaction: say what it was, refusals first."""
        failed = {r: book.error for r, book in self._books.items() if book.error is not None}
        refused = {
            remote: Refusal(code=error.name(), reason=error.str())
            for remote, error in failed.items()
            if error.code() in REFUSED
        }
        refused.update(self._batches.refused)
        if refused:
            remote, first = next(iter(refused.items()))
            text = f"produce to {remote}: {first.code} ({first.reason})"
            raise RefusedByTarget(text, refused=refused)
        for remote, error in failed.items():
            if error.code() == KafkaError._PURGE_QUEUE:  # noqa: SLF001 (public name)
                self._raise_cause(f"produce to {remote}")
            raise as_mirror_error(error, f"produce to {remote}", source=False)

    def commit(
        self, offsets: Mapping[TopicPartition, ShadowCommit], *, within: timedelta
    ) -> Committed:
        """See `ports.TransactionalProducer`."""
        theirs = [_commit_of(remote, commit) for remote, commit in offsets.items()]
        started = time.monotonic()
        with translated("send the shadow offsets"):
            self._producer.send_offsets_to_transaction(theirs, self._group, within.total_seconds())
        try:
            with translated("commit"):
                self._producer.commit_transaction(within.total_seconds())
        except TargetUnavailable as exc:
            raise CommitOutcomeUnknown(str(exc)) from exc
        took_s = time.monotonic() - started
        self._rest.begin(took_s=took_s)
        self._producer.poll(0)  # brings the log lines of the commit
        return Committed(took_s=took_s, was_cut=self._connection.was_cut)

    @contextmanager
    def _blaming(self, what: object) -> Iterator[None]:
        """Like `translated`; of a spoilt transaction the cause counts, not its echo."""
        try:
            with translated(what):
                yield
        except RestartTask:
            self._raise_cause(what)
            raise

    def _raise_cause(self, what: object) -> None:
        """
        Raise what spoilt the transaction, if anything did.

        The client fails a request of its own in the background, and then neither sends the
        records nor says so; only a call that the state of the transaction forbids tells why.
        """
        try:
            self._producer.begin_transaction()
        except KafkaException as exc:
            if exc.args[0].code() != KafkaError._STATE:  # noqa: SLF001 (public name)
                raise as_mirror_error(exc.args[0], what, source=False) from exc

    def close(self) -> None:
        """
        See `ports.TransactionalProducer`. What a spoilt transaction still holds is dropped.

        The client's destructor can wait for brokers, for seconds: another thread runs it.
        """
        self._producer.purge(blocking=False)
        threading.Thread(target=_let_go, args=(self._producer,), daemon=True).start()
        del self._producer


def _let_go(_producer: Producer) -> None:
    """The thread that runs this has the last reference."""


def _commit_of(remote: TopicPartition, commit: ShadowCommit) -> ClientPartition:
    at = commit.position
    if at.leader_epoch is None:
        return ClientPartition(
            remote.topic, remote.partition, at.next_offset, metadata=commit.metadata
        )
    return ClientPartition(
        remote.topic,
        remote.partition,
        at.next_offset,
        metadata=commit.metadata,
        leader_epoch=at.leader_epoch,
    )
