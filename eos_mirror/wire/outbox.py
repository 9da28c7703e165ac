"""
Batches that are not yet acknowledged by the target: queued, or sent.

A request holds at most one batch of each partition. Up to five batches of a partition may be
unacknowledged, because the broker remembers five to detect repetitions. Source: ProducerStateEntry.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.suspects import Refusal
from eos_mirror.wire.batches import Batch, stamp
from eos_mirror.wire.cluster import Cluster, Purpose
from eos_mirror.wire.connection import Bytes, Connection, wait_for
from eos_mirror.wire.errors import (
    CONCURRENT_TRANSACTIONS,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    REFUSED_RECORDS,
    REQUEST_TIMED_OUT,
    UNKNOWN_TOPIC_ID,
    Malformed,
    NotAcknowledged,
    Refused,
    Unreachable,
    WireError,
)
from eos_mirror.wire.messages import Api
from eos_mirror.wire.packing import Parcel
from eos_mirror.wire.partition_queue import FIRST_PAUSE_S, Book, PartitionQueue, refusal_of
from eos_mirror.wire.produce_requests import Identity, produce_request, produce_version

REQUEST_BYTES: Final = 8 << 20
"""A request is not filled beyond this: brokers accept 100 MiB, and read one request at a time."""

AGAIN: Final = NOT_LEADER | {
    CONCURRENT_TRANSACTIONS,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    REQUEST_TIMED_OUT,
}
"""
Answers after which the same batch is sent again, within the same transaction. If a broker has
stored it all the same, it recognises the sequence, and acknowledges it with its first offset.
"""

VOID: Final = AGAIN | REFUSED_RECORDS | {OUT_OF_ORDER_SEQUENCE_NUMBER}
"""Answers after which a batch that comes after a refused one was not stored."""

LONGEST_PAUSE_S: Final = 0.05
ALL_REPLICAS: Final = -1


class Outbox:
    """
    The batches of one producer id. Used by one thread.

    Invariants:
        A: The batches of a partition are sent in the order of `put`, with adjacent sequences.
        B: The first batch of a partition after `begin` is acknowledged before the second is sent.
        C: A batch is sent again only after an answer, unchanged, and before its transaction ends.
        D: After an error of `pump`, every further call raises it: nothing is sent any more.
    """

    def __init__(self, cluster: Cluster, identity: Identity, *, answered_within_s: float) -> None:
        """
        Args:
            answered_within_s: Deadline of each request.
        """
        self._cluster = cluster
        self._identity = identity
        self._within_s = answered_within_s
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._busy: dict[TopicPartition, PartitionQueue] = {}
        self._round = self._epoch_round = 0
        self._connections: dict[int, Connection] = {}
        self._names: dict[bytes, str] = {}
        self._ids: dict[str, bytes] = {}
        self._fault: WireError | None = None
        self.books: dict[TopicPartition, Book] = {}
        self.unacknowledged_bytes = 0

    # ------------------------------------------------------------------ transactions

    def begin(self, *, new_epoch: bool) -> None:
        """
        Start a transaction, or the time until the next flush. Everything is acknowledged.

        Args:
            new_epoch: Sequences begin at 0.
        """
        self.books.clear()
        self._round += 1
        if new_epoch:
            self._epoch_round = self._round

    def end(self) -> None:
        """Send nothing any more, and wait for no answer: another request of the owner failed."""
        self._fault = self._fault or Unreachable("an earlier request failed")

    @property
    def is_empty(self) -> bool:
        """True if nothing waits for an acknowledgement."""
        return not self._busy

    @property
    def refusals(self) -> Mapping[TopicPartition, Refusal]:
        """The refused batches, by partition."""
        return {p: book.refusal for p, book in self.books.items() if book.refusal is not None}

    def put(self, partition: TopicPartition, parcel: Parcel) -> None:
        """Queue a batch. Nothing is sent yet."""
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = PartitionQueue()
        book = self.books.get(partition)
        if book is None:
            book = self.books[partition] = Book()
        if parcel.is_copy:
            book.count += parcel.batch.count
        if book.refusal is None:
            queue.enter(self._round, new_epoch=queue.round < self._epoch_round)
            queue.waiting.append(parcel)
            self._busy[partition] = queue
            self.unacknowledged_bytes += parcel.batch.size

    def new_partitions(self) -> list[TopicPartition]:
        """Return the partitions whose first batch of the transaction waits to be sent."""
        return [
            partition
            for partition, queue in self._busy.items()
            if queue.waiting and not queue.flying and not queue.is_open
        ]

    # ------------------------------------------------------------------ sending

    @property
    def connections(self) -> list[Connection]:
        """The connections with unanswered requests; none after an error."""
        if self._fault is not None:
            return []
        return [one for one in self._connections.values() if one.unanswered]

    def pump(self) -> None:
        """
        Take the answers that have arrived, and send what may be sent. Does not wait for answers.

        Raises:
            Refused: A batch was refused for a reason other than its records.
            Unanswered: The outcome of a request is unknown.
            Unreachable: A leader cannot be reached.
        """
        if self._fault is not None:
            raise self._fault
        if not self.unacknowledged_bytes:
            return
        try:
            for connection in self.connections:
                while (answer := connection.advance()) is not None:
                    self._settle(*answer)
            while self._send_round():
                pass
        except WireError as exc:
            self._fault = exc
            raise

    def drain(self, *, until: float) -> None:
        """
        Send everything and wait for all acknowledgements. Refused partitions are left out.

        Raises:
            NotAcknowledged: Not everything was acknowledged in time.
            Refused, Unanswered, Unreachable: See `pump`.
        """
        self.pump()
        while not self.is_empty:
            self.wait(until=until)
            self.pump()

    def wait(self, *, until: float) -> None:
        """Wait for the next answer, or for the time to send a batch again."""
        if time.monotonic() > until:
            raise NotAcknowledged(frozenset(self._busy))
        connections = self.connections
        if connections:
            wait_for(connections, until=min(until, time.monotonic() + LONGEST_PAUSE_S))
        else:
            time.sleep(FIRST_PAUSE_S)

    def _send_round(self) -> bool:
        """Send one batch of each partition that may send; return True if there were any."""
        now = time.monotonic()
        may_send = [(p, queue) for p, queue in self._busy.items() if queue.may_send(now)]
        self._learn_leaders([p for p, _ in may_send], now)
        by_node: dict[int, list[tuple[TopicPartition, PartitionQueue]]] = {}
        sizes: dict[int, int] = {}
        for partition, queue in may_send:
            node = self._node_for(partition, queue, now)
            if node is None or self._drains(node):
                continue
            size = queue.waiting[0].batch.size
            if sizes.get(node, 0) + size > REQUEST_BYTES and sizes.get(node):
                continue  # in the next round
            sizes[node] = sizes.get(node, 0) + size
            by_node.setdefault(node, []).append((partition, queue))
        for node, some in by_node.items():
            self._send(node, some, now)
        return bool(by_node)

    def _drains(self, node: int) -> bool:
        """Return True if a connection has to log in again, and waits for its last answers."""
        known = self._connections.get(node)
        return known is not None and known.needs_login and known.unanswered > 0

    def _learn_leaders(self, partitions: Iterable[TopicPartition], now: float) -> None:
        """Ask for the leaders that are not known."""
        topics = {one.topic for one in partitions if self._cluster.leader(one) is None}
        if topics:
            self._cluster.learn(sorted(topics), until=now + self._within_s)

    def _node_for(self, partition: TopicPartition, queue: PartitionQueue, now: float) -> int | None:
        """Return the broker to send the next batch of a partition to; None if there is none now."""
        leader = self._cluster.leader(partition)
        if leader is None or leader.node is None:
            queue.again_at = now + LONGEST_PAUSE_S
            return None
        if queue.flying and queue.node != leader.node:
            return None  # what the former leader has is answered first: the order is kept
        muted_until = self._cluster.muted_until(leader.node, Purpose.PRODUCE)
        if muted_until > now:
            queue.again_at = muted_until
            return None
        queue.node = leader.node
        return leader.node

    def _send(
        self, node: int, some: list[tuple[TopicPartition, PartitionQueue]], now: float
    ) -> None:
        connection = self._connection(node, now)
        api = produce_version(connection, self._identity)
        sent: dict[TopicPartition, Parcel] = {}
        for partition, queue in some:
            parcel = queue.waiting.popleft()
            if not parcel.is_stamped:
                self._stamp(queue, parcel)
            queue.flying.append(parcel)
            sent[partition] = parcel
        body = self._encoded(api, sent)
        connection.send(api, body, until=now + self._within_s, tag=sent)

    def _connection(self, node: int, now: float) -> Connection:
        known = self._connections.get(node)
        if known is not None and known.unanswered:
            return known
        made = self._cluster.connection(node, Purpose.PRODUCE, until=now + self._within_s)
        self._connections[node] = made
        return made

    def _stamp(self, queue: PartitionQueue, parcel: Parcel) -> None:
        identity = self._identity
        parcel.sequence = queue.sequence
        queue.sequence = stamp(
            parcel.batch,
            identity.producer_id,
            identity.epoch,
            queue.sequence,
            transactional=identity.transactional_id is not None,
        )
        parcel.is_stamped = True

    def _encoded(self, api: Api, sent: Mapping[TopicPartition, Parcel]) -> list[Bytes]:
        """Return a request in parts."""
        topics: dict[str, list[tuple[int, Batch]]] = {}
        for partition, parcel in sent.items():
            topics.setdefault(partition.topic, []).append((partition.partition, parcel.batch))
        ids = {topic: self._id_of(topic) for topic in topics}
        fields = {
            "transactional_id": self._identity.transactional_id,
            "acks": ALL_REPLICAS,
            "timeout_ms": int(self._within_s * 1000),
        }
        return produce_request(api, fields, topics, ids)

    def _id_of(self, topic: str) -> bytes:
        """Return the id of a topic, which is the same as long as this object lives."""
        found = self._cluster.topics[topic].topic_id
        if self._ids.setdefault(topic, found) != found:
            raise Refused(UNKNOWN_TOPIC_ID, f"produce to {topic}", "it was created again")
        self._names[found] = topic
        return found

    # ------------------------------------------------------------------ answers

    def _settle(self, sent: dict[TopicPartition, Parcel], answer: Mapping[str, Any]) -> None:
        for partition, one in self._answered(answer):
            parcel = sent.pop(partition, None)
            queue = self._queues[partition]
            if parcel is None or not queue.flying:
                raise Malformed(f"an answer for {partition}, of which nothing was sent")
            code = one["error_code"]
            if not code:
                self._acknowledge(partition, queue, parcel, one["base_offset"])
            elif parcel.is_void and code in VOID:
                self._drop(queue, parcel)
            elif code in AGAIN or (code == OUT_OF_ORDER_SEQUENCE_NUMBER and queue.returned):
                self._return(partition, queue, parcel, code)
            else:
                self._refuse(partition, queue, parcel, one)
            if not queue.flying and queue.returned:
                self._send_returned(queue)
            if not queue.is_busy:
                self._busy.pop(partition, None)
        if sent:
            raise Malformed(f"no answer for {next(iter(sent))}")

    def _answered(
        self, answer: Mapping[str, Any]
    ) -> Iterator[tuple[TopicPartition, Mapping[str, Any]]]:
        for topic in answer["responses"]:
            name = topic["name"] if "name" in topic else self._names.get(topic["topic_id"])
            for one in topic["partitions"]:
                partition = TopicPartition(name or "?", one["index"])
                if partition not in self._queues:
                    raise Malformed(f"an answer for {partition}, of which nothing was sent")
                yield partition, one

    def _acknowledge(
        self, partition: TopicPartition, queue: PartitionQueue, parcel: Parcel, base_offset: int
    ) -> None:
        if queue.flying.popleft() is not parcel:
            raise Malformed(f"{partition}: an answer out of order")
        if queue.returned or parcel.is_void:
            raise Refused(OUT_OF_ORDER_SEQUENCE_NUMBER, f"produce to {partition}")
        self.unacknowledged_bytes -= parcel.batch.size
        queue.is_open, queue.pause_s = True, FIRST_PAUSE_S
        book = self.books[partition]
        if parcel.is_copy and base_offset >= 0:
            if book.first is None:
                book.first = base_offset
            book.last = base_offset + parcel.batch.count - 1

    def _return(
        self, partition: TopicPartition, queue: PartitionQueue, parcel: Parcel, code: int
    ) -> None:
        """Keep a batch to send it again, in order, once every later one is answered, too."""
        queue.flying.remove(parcel)
        queue.returned.append(parcel)
        if code in NOT_LEADER:
            self._cluster.topics.pop(partition.topic, None)

    def _send_returned(self, queue: PartitionQueue) -> None:
        """Queue the returned batches again, before all others, after a pause."""
        queue.waiting.extendleft(reversed(queue.returned))
        queue.returned.clear()
        queue.again_at = time.monotonic() + queue.pause_s
        queue.pause_s = min(queue.pause_s * 2, LONGEST_PAUSE_S)

    def _drop(self, queue: PartitionQueue, parcel: Parcel) -> None:
        """Forget a batch that the broker did not store."""
        queue.flying.remove(parcel)
        self.unacknowledged_bytes -= parcel.batch.size

    def _refuse(
        self,
        partition: TopicPartition,
        queue: PartitionQueue,
        parcel: Parcel,
        one: Mapping[str, Any],
    ) -> None:
        """
        Note a refusal; drop what comes after it in the partition, and can only be refused, too.

        Batches before it that were returned are sent again. If one of those is refused later, its
        refusal counts: it is the first.
        """
        code = one["error_code"]
        self._drop(queue, parcel)
        if code not in REFUSED_RECORDS or not parcel.is_copy:
            raise Refused(code, f"produce to {partition}", one["error_message"])
        self.books[partition].refusal = refusal_of(parcel, one)
        queue.sequence = parcel.sequence
        for later in queue.flying:
            later.is_void = True
        for later in queue.waiting:
            self.unacknowledged_bytes -= later.batch.size
        queue.waiting.clear()
