"""
One incarnation: a transactional producer that begins and commits, and never aborts.

A failed transaction ends with its incarnation; the coordinator or the next claimer aborts it.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import DecodedRun, RecordRun, TopicPartition, TopicRecord
from eos_mirror.core.side import Side
from eos_mirror.core.suspects import Refusal
from eos_mirror.errors import (
    CommitOutcomeUnknown,
    RefusedByTarget,
    RestartTask,
    TargetUnavailable,
)
from eos_mirror.kafka.batch_queue import Batches
from eos_mirror.kafka.batching import LOOK_EVERY_S, Backlog, send_one, send_record, send_stretch
from eos_mirror.kafka.client import new_producer
from eos_mirror.kafka.client_log import CLOSED_CONNECTIONS, logger_for
from eos_mirror.kafka.connection_watch import ConnectionWatch
from eos_mirror.kafka.delivery_book import DeliveryBook
from eos_mirror.kafka.errors import REFUSED, as_mirror_error, translated
from eos_mirror.kafka.marker_pause import MarkerPause
from eos_mirror.ports import Committed, Delivered, ShadowCommit

INIT_TIMEOUT_S = 30.0

DOUBTFUL_COMMIT_S = 0.25
"""A slower commit may have been sent twice: librdkafka repeats a request that timed out, and a late
first copy would commit the *next* transaction (KAFKA-17754). Commits take a few milliseconds on
idle brokers, and a request times out after 10 s by default (`settings/clients.py`). A repetition
after a broken connection is much faster; `ConnectionWatch` reports those. Source: decision 0012."""


class KafkaProducer:
    """Implements `ports.TransactionalProducer` with librdkafka (transaction protocol TV1)."""

    def __init__(self, config: Mapping[str, Any], transactional_id: str, *, group: object) -> None:
        """
        Initialise an incarnation.

        Args:
            config: Complete client configuration, except the transactional id.
            transactional_id: Never used before.
            group: Group metadata of the shadow group, which has no members.

        Raises:
            RestartTask: The target did not answer (TargetUnavailable) or did not initialise the id.
            NotAuthorized: WRITE on the transactional id is missing.
        """
        self._connection = ConnectionWatch()
        self._producer = new_producer(
            {
                **config,
                "transactional.id": transactional_id,
                "log_level": CLOSED_CONNECTIONS,
                "log.connection.close": True,
            },
            logger=logger_for(self._connection),
        )
        self._group = group
        self._books: dict[TopicPartition, DeliveryBook] = {}
        self._batches = Batches(self._producer)
        self._backlog = Backlog(self._producer, config)
        self._pause = MarkerPause()
        self._held: list[tuple[DecodedRun, TopicPartition, int | None]] | None = []
        with translated(f"initialise {transactional_id}"):
            # metadata first: init takes 2 ms after it, 50-500 ms without it
            self._producer.list_topics(timeout=INIT_TIMEOUT_S)
            self._producer.init_transactions(INIT_TIMEOUT_S)

    def begin(self) -> None:
        """See `ports.TransactionalProducer`."""
        self._books.clear()
        self._batches.clear()
        self._held = []
        with translated("begin"):
            self._producer.begin_transaction()
        if self._pause.was_short:
            self._end_pause()  # records that arrive meanwhile still join this transaction

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """See `ports.TransactionalProducer`. Runs are held back during the pause after a commit."""
        if self._held is not None:
            self._held.append((run.decoded(), remote, batch))
            if self._pause.left_s > 0:
                return
            self._end_pause()
        else:
            self._hand_over(run.decoded(), remote, batch)

    def _end_pause(self) -> None:
        """Wait for the end of the pause, then produce held-back runs. Once in a transaction."""
        if self._held is None:
            return
        held, self._held = self._held, None
        left_s = self._pause.left_s
        if left_s > 0:
            time.sleep(left_s)
        self._pause.end()
        for run, remote, batch in held:
            self._hand_over(run, remote, batch)

    def _hand_over(self, run: DecodedRun, remote: TopicPartition, batch: int | None) -> None:
        """Produce a run. Only its ends get a delivery callback, unless it has its own batch."""
        book = self._books.get(remote)
        if book is None:
            book = self._books[remote] = DeliveryBook(remote)
        last = len(run.offsets) - 1
        with self._blaming(book):
            if batch is not None:
                self._batches.add(run, remote, number=batch, on_record=book.on_any)
                book.count += last + 1
                self._backlog.add_unbatched(last + 1)
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

    def send_to(self, topic: str, records: Sequence[TopicRecord]) -> None:
        """See `ports.TransactionalProducer`."""
        self._end_pause()
        with translated(f"produce to {topic}"):
            for record in records:
                send_record(self._producer, topic, record)
        self._backlog.add_unbatched(len(records))

    def flush(self, *, within: timedelta) -> Mapping[TopicPartition, Delivered]:
        """See `ports.TransactionalProducer`."""
        self._end_pause()
        started = time.monotonic()
        deadline = started + within.total_seconds()
        with self._blaming("flush"):
            self._backlog.settle(until=deadline)
        self._acknowledge(deadline, within)
        self._pause.learn(flushing_since=started)
        while self._batches.hand_over_next():
            self._acknowledge(deadline, within)
        return {
            remote: Delivered(first=book.first, last=book.last, count=book.count)
            for remote, book in self._books.items()
        }

    def _acknowledge(self, deadline: float, within: timedelta) -> None:
        """Wait until every record is acknowledged; raise if any was refused."""
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
        """Raise the error of a failed record, refusals first: it spoils the transaction."""
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
            raise as_mirror_error(error, f"produce to {remote}", side=Side.TARGET)

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
        self._pause.begin(took_s=took_s)
        self._producer.poll(0)  # delivers the log lines of the commit
        return Committed(doubt=self._doubt(took_s))

    def _doubt(self, took_s: float) -> str | None:
        if self._connection.was_cut:
            return "a connection broke: the commit may have been sent twice"
        if took_s > DOUBTFUL_COMMIT_S:
            return f"the commit took {took_s:.3f} s: it may have been sent twice"
        return None

    @contextmanager
    def _blaming(self, what: object) -> Iterator[None]:
        """Act like `translated`, but raise what spoilt the transaction, not a follow-up error."""
        try:
            with translated(what):
                yield
        except RestartTask:
            self._raise_cause(what)
            raise

    def _raise_cause(self, what: object) -> None:
        """
        Raise what spoilt the transaction, if anything did.

        When a background request of the client fails, it neither sends the records nor reports
        the failure. Only a call that the transaction's state forbids returns the cause.
        """
        try:
            self._producer.begin_transaction()
        except KafkaException as exc:
            if exc.args[0].code() != KafkaError._STATE:  # noqa: SLF001 (public name)
                raise as_mirror_error(exc.args[0], what, side=Side.TARGET) from exc

    def close(self) -> None:
        """
        See `ports.TransactionalProducer`. Drops the records that a spoilt transaction still holds.

        The client's destructor can wait several seconds for brokers, so another thread runs it.
        """
        self._producer.purge(blocking=False)
        threading.Thread(target=_let_go, args=(self._producer,), daemon=True).start()
        del self._producer


def _let_go(_producer: Producer) -> None:
    """Drop the last reference on the thread that runs this."""


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
