"""The claims topic on connections of our own: it can be read as soon as it has a leader."""

import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from eos_mirror.core.claims import Claim, ClaimRecord, LiveClaims
from eos_mirror.core.records import TopicPartition, TopicRecord
from eos_mirror.core.side import Side
from eos_mirror.errors import UnreadableBatch
from eos_mirror.wire.batches import fetched_batches
from eos_mirror.wire.builder import record_batch
from eos_mirror.wire.cluster import Cluster, Leader, Purpose, soon
from eos_mirror.wire.codecs import CODECS
from eos_mirror.wire.connection import Connection
from eos_mirror.wire.errors import (
    INCONSISTENT_TOPIC_ID,
    NOT_LEADER,
    UNKNOWN_TOPIC_ID,
    UNUSABLE,
    Malformed,
    Refused,
    Unreachable,
    WireError,
)
from eos_mirror.wire.fetched_run import runs_of
from eos_mirror.wire.log_ends import Place, offsets_at
from eos_mirror.wire.messages import FETCH, NO_REPLICA, READ_UNCOMMITTED
from eos_mirror.wire.outbox import Outbox
from eos_mirror.wire.packing import Parcel
from eos_mirror.wire.plain_producer import PlainId
from eos_mirror.wire.transactions import plain_producer_id
from eos_mirror.wire.translate import translated

WITHIN_S: Final = 20.0
"""For everything that one call needs."""

ANSWERED_WITHIN_S: Final = 10.0
PAUSE_S: Final = 0.02
"""Before a broker is asked again, which leads the topic now or in a moment."""

WAIT_MS: Final = 100
MOST_BYTES: Final = 4 << 20
MOST_RECORDS: Final = 1_000
"""In one batch, so that it has some 150 KB: topics accept 1 MB unless they are configured."""

NO_EPOCH: Final = -1
UNKNOWN: Final = -1
NO_SESSION: Final = {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": []}

ELSEWHERE: Final = NOT_LEADER | {UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID}
"""Another broker may lead the topic, or it was created again: its id is learned, and compared."""

Question = Callable[[Connection, Leader], Any]
"""Asks the leader on a connection; returns the topics of the answer."""


class WireClaimsLog:
    """
    Implements `ports.ClaimsLog`. Used by one thread.

    Invariants:
        A: What `append` returns is acknowledged by all in-sync replicas.
        B: What `read_through` returns was read from the topic with the id that was given.
        C: A claim is in the log once: after a failure it is never written again.
    """

    def __init__(self, cluster: Cluster, topic: str, *, topic_id: str) -> None:
        """
        Args:
            cluster: Used by no one else.
            topic: One partition, compacted.
            topic_id: Of the topic when the flow started, as Kafka's tools print it.
        """
        self._cluster = cluster
        self._where = TopicPartition(topic, 0)
        self._topic_id = topic_id
        self._claims = LiveClaims(topic)
        self._outbox: Outbox | None = None

    # ------------------------------------------------------------------ writing

    def append(self, claims: Sequence[Claim]) -> Mapping[str, int]:
        """See `ports.ClaimsLog`."""
        return self._write({claim.key: claim.value for claim in claims})

    def tombstone(self, keys: Sequence[str]) -> None:
        """See `ports.ClaimsLog`."""
        self._write(dict.fromkeys(keys))

    def _write(self, records: Mapping[str, str | None]) -> dict[str, int]:
        until, offsets = time.monotonic() + WITHIN_S, dict[str, int]()
        keys = list(records)
        self._cluster.topics.pop(self._where.topic, None)  # its id is compared before it is written
        with self._translated("write to"):
            for start in range(0, len(keys), MOST_RECORDS):
                some = keys[start : start + MOST_RECORDS]
                first = self._write_batch({key: records[key] for key in some}, until)
                offsets |= {key: first + i for i, key in enumerate(some)}
        return offsets

    def _write_batch(self, records: Mapping[str, str | None], until: float) -> int:
        """Write records, and return the offset of the first one."""
        self._at_leader(Purpose.PRODUCE, until)
        if self._outbox is None:
            identity = PlainId(*plain_producer_id(self._cluster, until=until))
            self._outbox = Outbox(self._cluster, identity, answered_within_s=ANSWERED_WITHIN_S)
        batch = record_batch(
            [
                TopicRecord(key=key.encode(), value=None if value is None else value.encode())
                for key, value in records.items()
            ],
            timestamp_ms=time.time_ns() // 1_000_000,
            codec=CODECS["none"],
        )
        self._outbox.begin(new_epoch=False)
        self._outbox.put(self._where, Parcel(batch, range(batch.count)))
        self._outbox.drain(until=until)
        book = self._outbox.books[self._where]
        if book.refusal is not None:
            raise WireError(f"{book.refusal.code} ({book.refusal.reason})")
        if book.first is None:
            raise Malformed("an acknowledgement without an offset")
        return book.first

    # ------------------------------------------------------------------ reading

    def read_through(self, offset: int | None) -> Mapping[str, ClaimRecord]:
        """See `ports.ClaimsLog`."""
        until = time.monotonic() + WITHIN_S
        with self._translated("read"):
            if not self._claims.next_offset:
                self._claims.skip_to(self._offset_at(Place.START, until))
            last = self._offset_at(Place.END, until) - 1 if offset is None else offset
            self._fetch(until, wait_ms=0)  # at least once: it names the id of the topic
            while self._claims.next_offset <= last:
                if time.monotonic() > until:
                    raise Unreachable(f"not readable through offset {last}")
                self._fetch(until, wait_ms=WAIT_MS)
        return self._claims.live

    def _offset_at(self, place: Place, until: float) -> int:
        self._at_leader(Purpose.ASK, until)  # the id of the topic is compared
        return offsets_at(self._cluster, [self._where], place, until=until)[self._where]

    def _fetch(self, until: float, *, wait_ms: int) -> None:
        """Read what comes next, if there is something in time."""

        def ask(connection: Connection, leader: Leader) -> Any:
            one = {
                "partition": self._where.partition,
                "current_leader_epoch": leader.epoch,
                "fetch_offset": self._claims.next_offset,
                "last_fetched_epoch": NO_EPOCH,
                "log_start_offset": UNKNOWN,
                "partition_max_bytes": MOST_BYTES,
            }
            topic_id = self._cluster.topics[self._where.topic].topic_id
            fields = {
                "replica_id": NO_REPLICA,
                "max_wait_ms": wait_ms,
                "min_bytes": 1,
                "max_bytes": MOST_BYTES,
                "isolation_level": READ_UNCOMMITTED,
                "topics": [{"topic_id": topic_id, "partitions": [one]}],
                "rack_id": "",
                **NO_SESSION,
            }
            answer = connection.call(FETCH, fields, until=soon(until))
            if answer["error_code"]:
                raise Refused(answer["error_code"], f"read {self._where}")
            return answer["responses"]

        self._take(self._answer(ask, until)["records"] or memoryview(b""))

    def _take(self, records: memoryview) -> None:
        """Apply fetched records. Damaged ones are a fault of the target, not of the source."""
        next_offset = self._claims.next_offset
        fetched = fetched_batches(records, next_offset=next_offset)
        runs, fault = runs_of(self._where, fetched.batches, next_offset=next_offset)
        try:
            if fault is not None:
                raise fault
            for run in (one.decoded() for one in runs):
                for offset, key, value in zip(run.offsets, run.keys, run.values, strict=True):
                    self._claims.apply(offset, key, value)
        except UnreadableBatch as exc:
            raise Malformed(str(exc)) from exc
        self._claims.skip_to(fetched.next_offset)

    # ------------------------------------------------------------------ the leader

    def _answer(self, ask: Question, until: float) -> Mapping[str, Any]:
        """Return the leader's answer to a question, which changes nothing."""
        while True:
            connection, leader = self._at_leader(Purpose.ASK, until)
            try:
                (topic,) = ask(connection, leader)
                (one,) = topic["partitions"]
            except UNUSABLE:
                self._cluster.drop(connection)
            except ValueError as exc:
                raise Malformed(f"an answer about other partitions than {self._where}") from exc
            else:
                if not one["error_code"]:
                    return one  # type: ignore[no-any-return]
                if one["error_code"] not in ELSEWHERE:
                    raise Refused(one["error_code"], f"read {self._where}")
            self._forget_leader(until)

    def _at_leader(self, purpose: Purpose, until: float) -> tuple[Connection, Leader]:
        """Return a connection to the leader, once there is one that accepts it."""
        while True:
            try:
                leader = self._leader(until)
                if leader is not None and leader.node is not None:
                    made = self._cluster.connection(leader.node, purpose, until=soon(until))
                    return made, leader
            except UNUSABLE:
                if time.monotonic() > until:
                    raise
            self._forget_leader(until)

    def _leader(self, until: float) -> Leader | None:
        topic = self._where.topic
        if topic not in self._cluster.topics:
            self._cluster.learn([topic], until=until)
            found = self._cluster.topics.get(topic)
            printed = None if found is None else urlsafe_b64encode(found.topic_id).decode()
            self._claims.check_identity(
                found=printed and printed.rstrip("="), started_with=self._topic_id
            )
        return self._cluster.leader(self._where)

    def _forget_leader(self, until: float) -> None:
        """Wait a moment before the leader is asked for again."""
        self._cluster.topics.pop(self._where.topic, None)
        if time.monotonic() + PAUSE_S > until:
            raise Unreachable("it has no leader that answers")
        time.sleep(PAUSE_S)

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        """Translate errors. After one, everything begins with new connections."""
        try:
            with translated(f"{what} {self._where.topic}", side=Side.TARGET):
                yield
        except BaseException:
            self._outbox = None
            self._cluster.close()
            self._cluster.topics.clear()
            raise
