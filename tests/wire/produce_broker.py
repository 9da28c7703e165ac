"""A broker that is written to: it checks sequences as Kafka's ProducerStateEntry does."""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eos_mirror.wire.batches import HEADER, SEQUENCES, Batch
from eos_mirror.wire.errors import (
    INVALID_PRODUCER_EPOCH,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    REFUSED_RECORDS,
    REQUEST_TIMED_OUT,
)
from eos_mirror.wire.messages import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN_3,
    END_TXN_5,
    INIT_PRODUCER_ID,
    PRODUCE_9,
    TXN_OFFSET_COMMIT_3,
)
from eos_mirror.wire.outbox import AGAIN
from tests.wire.examples import whole
from tests.wire.scripted_broker import Asked, Peer, ScriptedBroker

REMEMBERED = 5
STORED = frozenset({NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT})
"""Errors that Kafka returns after the leader has stored the batch."""

PRODUCER_ID, EPOCH = 4_000, 1
TXN = frozenset(
    {
        INIT_PRODUCER_ID.key,
        ADD_PARTITIONS_TO_TXN.key,
        ADD_OFFSETS_TO_TXN.key,
        TXN_OFFSET_COMMIT_3.key,
        END_TXN_3.key,
    }
)
Name = tuple[str | bytes, int]
Change = Callable[[Peer, Asked, dict[str, Any]], dict[str, Any] | None]


@dataclass(slots=True)
class Written:
    """
    The log of one partition, and its producer.

    Attributes:
        offsets: Upstream offset of each record; `first_ms` of a batch carries that of its first.
        remembered: First and last sequence, and base offset, of the last batches.
        arrived: Batches that arrived, in any state.
        codes: Answers instead, by the number of the arrival.
    """

    offsets: list[int] = field(default_factory=list)
    epoch: int | None = None
    remembered: deque[tuple[int, int, int]] = field(
        default_factory=lambda: deque(maxlen=REMEMBERED)
    )
    arrived: int = 0
    codes: dict[int, int] = field(default_factory=dict)
    answered: dict[tuple[int, int], int | None] = field(default_factory=dict)

    def append(self, batch: Batch) -> tuple[int, int]:
        """Append a batch as Kafka does; return the code, and the offset of its first record."""
        header = HEADER.unpack_from(batch.view)
        epoch, first = header[10], header[11]
        last = (first + batch.count - 1) % SEQUENCES
        if self.epoch is not None and epoch < self.epoch:
            return INVALID_PRODUCER_EPOCH, -1
        if epoch == self.epoch:
            for one in self.remembered:
                if one[:2] == (first, last):
                    return 0, one[2]
        if first != self._expected(epoch):
            return OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        if epoch != self.epoch:
            self.remembered.clear()
        self.epoch = epoch
        base = len(self.offsets)
        self.remembered.append((first, last, base))
        self.offsets += range(header[7], header[7] + batch.count)
        return 0, base

    def _expected(self, epoch: int) -> int:
        if epoch != self.epoch or not self.remembered:
            return 0
        return (self.remembered[-1][1] + 1) % SEQUENCES


class ProduceBroker:
    """
    Answers Produce requests, and those of transactions.

    Attributes:
        written: By topic (id or name) and number.
        hold: Answer only after this many requests have arrived, in their order.
        changes: What happens to the next answers of each kind of request.
        sent_twice: Batches that arrived again although no answer allowed it.
    """

    def __init__(self, *, level: int = 2) -> None:
        self.broker = ScriptedBroker(self._serve, features={"transaction.version": level})
        self.written: dict[Name, Written] = {}
        self.hold = 0
        self.changes: dict[int, deque[Change | None]] = {}
        self.sent_twice: list[tuple[Name, int]] = []
        self.epoch = EPOCH
        self._held: list[tuple[Peer, Asked, dict[str, Any]]] = []

    def add_topic(self, name: str, count: int) -> bytes:
        """Create a topic, and return its id."""
        chosen = name.encode().ljust(16, b"-")
        self.broker.topics[name] = chosen, count
        for number in range(count):
            # the same log, however it is named
            self.written[name, number] = self.written[chosen, number] = Written()
        return chosen

    def change(self, key: int, *each: Change | None) -> None:
        """Change the next answers to requests of a kind; None leaves one as it is."""
        self.changes.setdefault(key, deque()).extend(each)

    def counts(self) -> Counter[str]:
        """Return how many requests of transactions, and Produce requests, arrived."""
        kinds = TXN | {PRODUCE_9.key}
        return Counter(one.api.name for one in self.broker.seen if one.api.key in kinds)

    def _serve(self, peer: Peer, asked: Asked) -> None:
        answer = self._answer(asked)
        queue = self.changes.get(asked.api.key)
        change = queue.popleft() if queue else None
        if change is not None:
            changed = change(peer, asked, answer)
            if changed is None:
                return
            answer = changed
        self._held.append((peer, asked, answer))
        if len(self._held) >= self.hold:
            self.release()

    def release(self) -> None:
        """Send the answers that are held, and hold none any more."""
        self.hold = 0
        held, self._held = self._held, []
        for one in held:
            one[0].answer(*one[1:])

    def _answer(self, asked: Asked) -> dict[str, Any]:
        key = asked.api.key
        if key == PRODUCE_9.key:
            return self._produced(asked)
        if key == ADD_PARTITIONS_TO_TXN.key:
            return {"throttle_time_ms": 0, "results": _partitions(asked, "results")}
        if key == TXN_OFFSET_COMMIT_3.key:
            return {"throttle_time_ms": 0, "topics": _partitions(asked, "partitions")}
        answer = {"throttle_time_ms": 0, "error_code": 0}
        if key == INIT_PRODUCER_ID.key:
            return {**answer, "producer_id": PRODUCER_ID, "producer_epoch": self.epoch}
        if asked.api is END_TXN_5:
            self.epoch += 1
            return {**answer, "producer_id": PRODUCER_ID, "producer_epoch": self.epoch}
        return answer

    def _produced(self, asked: Asked) -> dict[str, Any]:
        responses = []
        for topic in asked.fields["topics"]:
            name = topic.get("name") or topic["topic_id"]
            found = [
                self._one(name, one["index"], whole(bytearray(one["records"])))
                for one in topic["partitions"]
            ]
            field_name = "name" if "name" in topic else "topic_id"
            responses.append({field_name: name, "partitions": found})
        return {"responses": responses, "throttle_time_ms": 0}

    def _one(self, name: str | bytes, number: int, batch: Batch) -> dict[str, Any]:
        log = self.written[name, number]
        header = HEADER.unpack_from(batch.view)
        sequence = header[10], header[11]
        allowed = AGAIN | REFUSED_RECORDS | {OUT_OF_ORDER_SEQUENCE_NUMBER}
        if sequence in log.answered and log.answered[sequence] not in allowed:
            self.sent_twice.append(((name, number), header[11]))
        code = log.codes.get(log.arrived, 0)
        log.arrived += 1
        base = -1
        if not code or code in STORED:
            own, base = log.append(batch)
            code = own or code
        log.answered[sequence] = code
        return {
            "index": number,
            "error_code": code,
            "base_offset": -1 if code else base,
            "log_append_time_ms": -1,
            "log_start_offset": 0,
            "record_errors": [],
            "error_message": None,
        }


def _partitions(asked: Asked, inner: str) -> list[Mapping[str, Any]]:
    """Return an answer without an error for every partition of a request."""
    return [
        {
            "name": topic["name"],
            inner: [
                {
                    "partition_index": one if isinstance(one, int) else one["partition_index"],
                    "error_code": 0,
                }
                for one in topic["partitions"]
            ],
        }
        for topic in asked.fields["topics"]
    ]


# ---------------------------------------------------------------------- changes


def lost(*_: Any) -> None:
    """Send no answer; the connection stays."""


def reset(peer: Peer, _: Asked, __: dict[str, Any]) -> None:
    """Reset the connection instead of an answer."""
    peer.reset()


def doubled(peer: Peer, asked: Asked, answer: dict[str, Any]) -> dict[str, Any]:
    """Send the answer twice."""
    peer.answer(asked, answer)
    return answer


def malformed(peer: Peer, *_: Any) -> None:
    """Send a frame that is no answer."""
    peer.send(b"\0\0\0\6\0\0\0\0\0\0")


def coded(code: int) -> Change:
    """Return a change that puts an error code everywhere."""

    def change(_: Peer, __: Asked, answer: dict[str, Any]) -> dict[str, Any]:
        changed: dict[str, Any] = _coded(answer, code)
        return changed

    return change


def _coded(value: Any, code: int) -> Any:
    if isinstance(value, list):
        return [_coded(one, code) for one in value]
    if isinstance(value, dict):
        found = {name: _coded(one, code) for name, one in value.items()}
        return found | ({"error_code": code} if "error_code" in found else {})
    return value


def without_partitions(_: Peer, __: Asked, answer: dict[str, Any]) -> dict[str, Any]:
    """Leave the partitions out of an answer."""
    return {name: [] if isinstance(value, list) else value for name, value in answer.items()}
