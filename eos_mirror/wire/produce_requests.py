"""Produce requests: which version is sent, and how batches are put into one."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from eos_mirror.wire.batches import Batch
from eos_mirror.wire.codec import uvarint
from eos_mirror.wire.connection import Bytes, Connection
from eos_mirror.wire.messages import PRODUCE_9, PRODUCE_12, PRODUCE_13, Api


class Identity(Protocol):
    """Who writes: a producer id of the target."""

    producer_id: int
    epoch: int
    transactional_id: str | None

    @property
    def joins_by_writing(self) -> bool:
        """True if a partition joins the transaction with its first batch (KIP-890)."""


def produce_version(connection: Connection, identity: Identity) -> Api:
    """
    Return the version to send: from 12 on, a request adds its partitions to the transaction.

    Version 13 names topics by their ids, so nothing is written to a topic that was created again.
    """
    if identity.transactional_id is not None and not identity.joins_by_writing:
        return PRODUCE_9
    if connection.knows(PRODUCE_13):
        return PRODUCE_13
    return PRODUCE_12 if connection.knows(PRODUCE_12) else PRODUCE_9


def produce_request(
    api: Api,
    fields: Mapping[str, Any],
    topics: Mapping[str, Sequence[tuple[int, Batch]]],
    ids: Mapping[str, bytes],
) -> list[Bytes]:
    """
    Return the parts of a request. The batches are sent from where they lie.

    Args:
        fields: Those before the topics.
        topics: Partition and batch, by topic; a partition has one batch at most.
        ids: Of these topics.
    """
    # without the tags that end it: the topics come first
    head = bytearray(api.request.encode(fields)[:-1]) + uvarint(len(topics) + 1)
    parts: list[Bytes] = []
    for topic, batches in topics.items():
        head += ids[topic] if api is PRODUCE_13 else _compact(topic)
        head += uvarint(len(batches) + 1)
        for number, batch in batches:
            head += number.to_bytes(4) + uvarint(batch.size + 1)
            parts += [bytes(head), batch.view]
            head = bytearray(b"\0")
        head += b"\0"
    parts.append(bytes(head) + b"\0")
    return parts


def _compact(text: str) -> bytes:
    data = text.encode()
    return uvarint(len(data) + 1) + data
