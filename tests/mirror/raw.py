"""
Requests that the client library cannot send, encoded byte by byte: records (magic 2), markers,
offsets of groups with any name and any metadata, and heartbeats of Kafka Streams.
"""

import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import wait_until

PRODUCE, PRODUCE_VERSION = 0, 3
WRITE_TXN_MARKERS, WRITE_TXN_MARKERS_VERSION = 27, 1
OFFSET_COMMIT, OFFSET_COMMIT_VERSION = 8, 2
OFFSET_FETCH, OFFSET_FETCH_VERSION = 9, 2
FIND_COORDINATOR, FIND_COORDINATOR_VERSION = 10, 0
STREAMS_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT_VERSION = 88, 0
JOINS, LEAVES = 0, -1
"""Member epochs of the first and the last heartbeat."""
NOT_LEADER = 6
NOT_COORDINATOR = 16
LATER = frozenset({14, 15, 16})
"""Errors to retry: the coordinator is loading, not available yet, or on another broker."""
OLD_METADATA = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.FENCED_LEADER_EPOCH})
CASTAGNOLI = 0x82F63B78


@dataclass(frozen=True, kw_only=True)
class RawRecord:
    """A record with any bytes. `timestamp` is in milliseconds."""

    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[bytes, bytes | None]] = ()


def produce_raw(
    admin: AdminClient, topic: str, partition: int, records: Sequence[RawRecord]
) -> None:
    """Append one batch to a partition; ask again while the partition gets its leader."""
    answers: list[int] = []

    def is_taken() -> bool:
        answers.append(_produce(admin, topic, partition, _batch(records)))
        return answers[-1] != NOT_LEADER

    wait_until(is_taken, within=timedelta(seconds=10), what=f"a leader of {topic}-{partition}")
    assert answers[-1] == 0, f"the broker refused the batch: error {answers[-1]}"


def _produce(admin: AdminClient, topic: str, partition: int, batch: bytes) -> int:
    """Return the error code of one Produce request."""
    name = topic.encode()
    body = (
        struct.pack(">hhii", -1, -1, 10_000, 1)  # no transactional id, acks=all, timeout, topics
        + struct.pack(">h", len(name))
        + name
        + struct.pack(">ii", 1, partition)
        + struct.pack(">i", len(batch))
        + batch
    )
    header = struct.pack(">hhih", PRODUCE, PRODUCE_VERSION, 1, 4) + b"test"
    answer = _ask_leader(admin, topic, partition, header + body)
    return int(struct.unpack_from(">h", answer, 4 + 4 + 2 + len(name) + 4 + 4)[0])


def write_marker(
    admin: AdminClient, topic: str, partition: int, *, producer: tuple[int, int], commit: bool
) -> None:
    """
    End the open transaction of a producer on one partition, as only a coordinator may.

    Args:
        producer: Id and epoch.
    """
    name = topic.encode()
    body = (
        b"\x02"  # one marker; this version encodes a length plus one
        + struct.pack(">qh?", *producer, commit)
        + bytes([2, len(name) + 1])
        + name
        + b"\x02"
        + struct.pack(">i", partition)
        + b"\0"
        + struct.pack(">i", _coordinator_epoch(admin))
        + b"\0\0"
    )
    header = struct.pack(">hhih", WRITE_TXN_MARKERS, WRITE_TXN_MARKERS_VERSION, 1, 4) + b"test\0"
    answer = _ask_leader(admin, topic, partition, header + body)
    error = struct.unpack_from(">h", answer, 4 + 1 + 1 + 8 + 1 + 1 + len(name) + 1 + 4)[0]
    assert error == 0, f"the broker refused the marker: error {error}"


def _coordinator_epoch(admin: AdminClient) -> int:
    """
    Return the leader epoch of the only partition of the transaction log.

    It changes when a broker's session times out on a busy machine. A client that still has the
    previous epoch reads the metadata again.
    """
    log = ClientPartition("__transaction_state", 0)
    found: list[int | None] = []

    def is_known() -> bool:
        (answer,) = admin.list_offsets({log: OffsetSpec.latest()}).values()
        try:
            found.append(answer.result(10).leader_epoch)
        except KafkaException as error:
            if error.args[0].code() not in OLD_METADATA:
                raise
            admin.list_topics(timeout=10)
        return bool(found)

    wait_until(is_known, within=timedelta(seconds=30), what="the epoch of the transaction log")
    assert found[0] is not None, "the broker did not return the epoch of the transaction log"
    return found[0]


def commit_raw(
    admin: AdminClient, group: str, offsets: Mapping[TopicPartition, tuple[int, str]]
) -> None:
    """
    Commit offsets as an old consumer without a member id does.

    Args:
        offsets: Offset and metadata. The metadata is sent unchanged, without the NUL that the
            client library adds.
    """
    answers: list[int] = []

    def is_taken() -> bool:
        answers.append(_commit(admin, group, offsets))
        return answers[-1] not in LATER

    wait_until(is_taken, within=timedelta(seconds=30), what=f"a coordinator of group {group!r}")
    assert answers[-1] == 0, f"the broker refused the offsets: error {answers[-1]}"


def _commit(
    admin: AdminClient, group: str, offsets: Mapping[TopicPartition, tuple[int, str]]
) -> int:
    """Return the first error code of an OffsetCommit, or that of the coordinator lookup."""
    broker = next(iter(admin.list_topics(timeout=10).brokers.values()))
    coordinator = coordinator_named_by((str(broker.host), broker.port), group)
    if isinstance(coordinator, int):
        return coordinator
    body = _string(group) + struct.pack(">i", -1) + _string("") + struct.pack(">q", -1)
    body += struct.pack(">i", len(offsets))
    for (topic, partition), (offset, metadata) in offsets.items():
        body += _string(topic) + struct.pack(">iiq", 1, partition, offset) + _string(metadata)
    answer = _ask(coordinator, _header(OFFSET_COMMIT, OFFSET_COMMIT_VERSION) + body)
    errors: list[int] = []
    at = 8
    for _ in offsets:
        (length,) = struct.unpack_from(">h", answer, at)
        errors += struct.unpack_from(">h", answer, at + 2 + length + 8)
        at += 2 + length + 10
    return next((int(error) for error in errors if error), 0)


def streams_heartbeat(admin: AdminClient, group: str, topic: str, *, epoch: int) -> None:
    """Join or leave a group as the member of a Kafka Streams application (KIP-1071)."""
    answers: list[int] = []

    def is_taken() -> bool:
        answers.append(_streams_heartbeat(admin, group, topic, epoch))
        return answers[-1] not in LATER

    wait_until(is_taken, within=timedelta(seconds=30), what=f"a coordinator of group {group!r}")
    assert answers[-1] == 0, f"the broker refused the heartbeat: error {answers[-1]}"


def _streams_heartbeat(admin: AdminClient, group: str, topic: str, epoch: int) -> int:
    """Return the error code of one heartbeat, or that of the coordinator lookup."""
    broker = next(iter(admin.list_topics(timeout=10).brokers.values()))
    coordinator = coordinator_named_by((str(broker.host), broker.port), group)
    if isinstance(coordinator, int):
        return coordinator
    none, empty, end = b"\0", b"\x01", b"\0"  # arrays and texts have a length plus one
    subtopology = _compact("0") + b"\x02" + _compact(topic) + empty * 5 + end
    topology = b"\x01" + struct.pack(">i", 0) + b"\x02" + subtopology + end
    body = _compact(group) + _compact("member") + struct.pack(">ii", epoch, -1)
    body += none + none + struct.pack(">i", 60_000)  # no instance, no rack
    body += topology + empty * 3 if epoch == JOINS else b"\xff" + none * 3  # and its tasks
    body += _compact("process") + b"\xff" + none * 3 + b"\0" + end
    header = _header(STREAMS_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT_VERSION) + end
    (error,) = struct.unpack_from(">h", _ask(coordinator, header + body), 4 + 1 + 4)
    return int(error)


def _compact(text: str) -> bytes:
    data = text.encode()
    return bytes([len(data) + 1]) + data


def coordinator_named_by(address: tuple[str, int], group: str) -> tuple[str, int] | int:
    """Return host and port of the group's coordinator as this broker knows it, or its error."""
    answer = _ask(address, _header(FIND_COORDINATOR, FIND_COORDINATOR_VERSION) + _string(group))
    (error,) = struct.unpack_from(">h", answer, 4)
    if error:
        return int(error)
    (length,) = struct.unpack_from(">h", answer, 10)
    (port,) = struct.unpack_from(">i", answer, 12 + length)
    return answer[12 : 12 + length].decode(), int(port)


def fetch_error(address: tuple[str, int], group: str) -> int:
    """Return the error code of a broker that is asked for all offsets of a group."""
    request = _header(OFFSET_FETCH, OFFSET_FETCH_VERSION) + _string(group) + struct.pack(">i", -1)
    (error,) = struct.unpack_from(">h", _ask(address, request)[-2:])
    return int(error)


def _header(api: int, version: int) -> bytes:
    return struct.pack(">hhih", api, version, 1, 4) + b"test"


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _ask_leader(admin: AdminClient, topic: str, partition: int, request: bytes) -> bytes:
    """Send a request to the partition's leader; return the answer from its correlation id on."""
    metadata = admin.list_topics(topic, timeout=10)
    leader = metadata.brokers[metadata.topics[topic].partitions[partition].leader]
    return _ask((str(leader.host), leader.port), request)


def _ask(address: tuple[str, int], request: bytes) -> bytes:
    """Send a request; return the answer from its correlation id on."""
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        return _receive(connection)


def _receive(connection: socket.socket) -> bytes:
    wanted = 4
    data = b""
    while len(data) < wanted:
        part = connection.recv(65_536)
        assert part, "the broker closed the connection"
        data += part
        if wanted == 4 and len(data) >= 4:
            wanted = 4 + struct.unpack_from(">i", data)[0]
    return data[4:]


def _batch(records: Sequence[RawRecord]) -> bytes:
    base = records[0].timestamp
    newest = max(record.timestamp for record in records)
    body = b"".join(_record(record, i, base) for i, record in enumerate(records))
    checked = (
        struct.pack(">hiqqqhii", 0, len(records) - 1, base, newest, -1, -1, -1, len(records)) + body
    )
    tail = struct.pack(">ibI", -1, 2, _crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(tail)) + tail


def _record(record: RawRecord, delta: int, base: int) -> bytes:
    body = b"\0" + _varint(record.timestamp - base) + _varint(delta)
    body += _bytes(record.key) + _bytes(record.value) + _varint(len(record.headers))
    for key, value in record.headers:
        body += _bytes(key) + _bytes(value)
    return _varint(len(body)) + body


def _bytes(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ CASTAGNOLI * (crc & 1)
    return crc ^ 0xFFFFFFFF
