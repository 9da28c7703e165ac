"""A broker that is read from: logs, and fetch sessions as Kafka keeps them (KIP-227)."""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eos_mirror.wire.batches import Batch
from eos_mirror.wire.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    INVALID_FETCH_SESSION_EPOCH,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
)
from eos_mirror.wire.messages import FETCH
from tests.wire.examples import batch_of, plain_rows
from tests.wire.scripted_broker import Asked, Peer, ScriptedBroker

WAIT_S = 0.01
"""How long a request without records is held, whatever it asks for: tests are short."""

Key = tuple[bytes, int]


@dataclass(slots=True)
class Log:
    """
    The log of one partition.

    Attributes:
        start, end: First offset, and the end, which is stable.
    """

    batches: list[Batch] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def append(self, records: int, *, value_bytes: int = 20) -> None:
        """Append a batch."""
        rows = plain_rows(self.end + records, value_bytes=value_bytes)[self.end :]
        self.batches.append(batch_of(rows, base_offset=self.end))
        self.end += records

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return batches from the one that holds an offset on: at least one, if there is any."""
        found = bytearray()
        for one in self.batches:
            if found and len(found) + one.size > max_bytes:
                break
            if one.next_offset > offset:
                found += one.view
        return bytes(found)


@dataclass(slots=True)
class _Session:
    epoch: int = 1
    wanted: dict[Key, Mapping[str, Any]] = field(default_factory=dict)
    reported: dict[Key, int] = field(default_factory=dict)


Change = Callable[[Peer, Asked, dict[str, Any]], dict[str, Any] | None]
"""Changes an answer before it is sent; None: nothing is sent."""


class FetchBroker:
    """
    Answers Fetch requests.

    Attributes:
        logs: By topic id and number.
        errors: Codes to answer instead, by the same.
        changes: What happens to the next answers; None leaves one as it is.
        holds: While it is cleared, nothing is answered.
    """

    def __init__(self, **more: Any) -> None:
        self.broker = ScriptedBroker(self._serve, **more)
        self.logs: dict[Key, Log] = {}
        self.errors: dict[Key, int] = {}
        self.changes: deque[Change | None] = deque()
        self.holds = threading.Event()
        self.sessions: dict[int, _Session] = {}
        self._next_session = 1

    def add_topic(self, name: str, count: int, *, topic_id: bytes | None = None) -> bytes:
        """Create a topic with empty logs, and return its id."""
        chosen = topic_id or name.encode().ljust(16, b"-")
        self.broker.topics[name] = chosen, count
        for number in range(count):
            self.logs[chosen, number] = Log()
        return chosen

    def forget_sessions(self) -> None:
        """Forget every session, as a broker that needs the memory."""
        self.sessions.clear()

    def _serve(self, peer: Peer, asked: Asked) -> None:
        assert asked.api is FETCH
        answer = self._answer(asked.fields)
        change = self.changes.popleft() if self.changes else None
        if change is not None:
            changed = change(peer, asked, answer)
            if changed is None:
                return
            answer = changed
        if not answer["responses"]:
            self.holds.wait(WAIT_S)
        peer.answer(asked, answer)

    def _answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        session_id, epoch = asked["session_id"], asked["session_epoch"]
        if epoch == 0:
            self.sessions.pop(session_id, None)
            session_id, self._next_session = self._next_session, self._next_session + 1
            session = self.sessions[session_id] = _Session()
        elif session_id not in self.sessions:
            return failed(FETCH_SESSION_ID_NOT_FOUND)
        elif self.sessions[session_id].epoch != epoch:
            return failed(INVALID_FETCH_SESSION_EPOCH)
        else:
            session = self.sessions[session_id]
            session.epoch += 1
        for topic in asked["topics"]:
            for one in topic["partitions"]:
                session.wanted[topic["topic_id"], one["partition"]] = one
        for topic in asked["forgotten_topics_data"]:
            for number in topic["partitions"]:
                session.wanted.pop((topic["topic_id"], number))
                session.reported.pop((topic["topic_id"], number), None)
        return self._read(session_id, session, asked["max_bytes"])

    def _read(self, session_id: int, session: _Session, max_bytes: int) -> dict[str, Any]:
        responses = []
        for key, one in session.wanted.items():
            found = self._partition(key, one, max_bytes)
            has_news = found["records"] or session.reported.get(key) != found["high_watermark"]
            if has_news or found["error_code"]:
                responses.append({"topic_id": key[0], "partitions": [found]})
                session.reported[key] = found["high_watermark"]
        return {
            "throttle_time_ms": 0,
            "error_code": 0,
            "session_id": session_id,
            "responses": responses,
        }

    def _partition(self, key: Key, one: Mapping[str, Any], max_bytes: int) -> dict[str, Any]:
        log = self.logs.get(key)
        code = UNKNOWN_TOPIC_ID if log is None else self.errors.get(key, 0)
        records = b""
        if log is not None and not code:
            if log.start <= one["fetch_offset"] <= log.end:
                records = log.read(one["fetch_offset"], min(max_bytes, one["partition_max_bytes"]))
            else:
                code = OFFSET_OUT_OF_RANGE
        end = -1 if log is None or code else log.end
        return a_partition(key[1], code=code, end=end, records=records)


def a_partition(number: int, *, code: int = 0, end: int, records: bytes = b"") -> dict[str, Any]:
    """Return what an answer says of one partition."""
    return {
        "partition_index": number,
        "error_code": code,
        "high_watermark": end,
        "last_stable_offset": end,
        "log_start_offset": 0,
        "aborted_transactions": None,
        "preferred_read_replica": -1,
        "records": records,
    }


def failed(code: int) -> dict[str, Any]:
    """Return an answer that is an error."""
    return {"throttle_time_ms": 0, "error_code": code, "session_id": 0, "responses": []}


# ---------------------------------------------------------------------- changes


def lost(peer: Peer, _: Asked, __: dict[str, Any]) -> None:
    """Send no answer: the connection is reset."""
    peer.reset()


def with_foreign_partition(_: Peer, __: Asked, answer: dict[str, Any]) -> dict[str, Any]:
    """Add a partition that was not asked for, after the others."""
    foreign = {"topic_id": bytes(16), "partitions": [a_partition(99, end=5)]}
    return {**answer, "responses": [*answer["responses"], foreign]}


def empty(_: Peer, __: Asked, answer: dict[str, Any]) -> dict[str, Any]:
    """Remove all records, as from an answer that has no room."""
    return with_partitions(answer, records=b"")


def half(_: Peer, __: Asked, answer: dict[str, Any]) -> dict[str, Any]:
    """Cut the records of every partition in the middle."""
    return {
        **answer,
        "responses": [
            {
                **topic,
                "partitions": [
                    {**one, "records": one["records"][: len(one["records"]) // 2]}
                    for one in topic["partitions"]
                ],
            }
            for topic in answer["responses"]
        ],
    }


def not_leader(_: Peer, __: Asked, answer: dict[str, Any]) -> dict[str, Any]:
    """Say of every partition that another broker leads it."""
    return with_partitions(answer, error_code=NOT_LEADER_OR_FOLLOWER, records=b"")


def unknown_error(_: Peer, __: Asked, answer: dict[str, Any]) -> dict[str, Any]:
    """Say of every partition that something is wrong, and not what."""
    return with_partitions(answer, error_code=UNKNOWN_SERVER_ERROR, records=b"")


def session_lost(_: Peer, __: Asked, ___: dict[str, Any]) -> dict[str, Any]:
    """Say that the session is not known."""
    return failed(FETCH_SESSION_ID_NOT_FOUND)


def wrong_epoch(_: Peer, __: Asked, ___: dict[str, Any]) -> dict[str, Any]:
    """Say that the session has another epoch."""
    return failed(INVALID_FETCH_SESSION_EPOCH)


def no_session(_: Peer, __: Asked, answer: dict[str, Any]) -> dict[str, Any]:
    """Keep no session, as a broker whose cache is full."""
    return {**answer, "session_id": 0}


def with_partitions(answer: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Change fields of every partition."""
    return {
        **answer,
        "responses": [
            {**topic, "partitions": [{**one, **fields} for one in topic["partitions"]]}
            for topic in answer["responses"]
        ],
    }
