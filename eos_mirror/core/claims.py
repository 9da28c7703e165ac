"""
Claims: which incarnation writes which target partition.

A claim is one record of the claims topic. It is never rewritten; a tombstone of its key ends it.
The order of the log decides which claim is earlier (docs/guarantees.md, claim-log fencing).
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import FatalError, ForeignRecord

MODE_KEY = '["mode"]'
"""Key of the only record of the claims topic that is no claim: the mode of the flow."""


class DeliveryMode(Enum):
    """What a flow promises. Tasks of one flow all run in the same mode."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    SOURCE = "source-connector"
    """At least once, with positions where MirrorMaker 2 stores its own."""
    HANDED_OVER = "handed-over"
    """MirrorMaker 2 continues the copies: no task of the flow runs."""


NO_SLOT = -1
"""Stands in the log for a claim of a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """
    One incarnation's claim on one target partition.

    Attributes:
        remote: The target partition, not the source's: two incarnations exclude each other on
            what they write, even when the source topic was re-created in between.
        transactional_id: The incarnation, initialised before the claim was appended.
        sequence: Counter in the process; distinguishes repeated claims.
        slot: Task slot, for people; None: a command such as `adopt` claims.
        host: Host and process id, for people.
    """

    remote: TopicPartition
    transactional_id: str
    sequence: int
    slot: int | None = None
    host: str = ""

    @property
    def key(self) -> str:
        """Record key; unique per claim."""
        return json.dumps(
            [self.remote.topic, self.remote.partition, self.transactional_id, self.sequence],
            separators=(",", ":"),
        )

    @property
    def value(self) -> str:
        """Record value: the fields that the key does not have."""
        slot = NO_SLOT if self.slot is None else self.slot
        return json.dumps({"slot": slot, "host": self.host}, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRecord:
    """A live claim and its offset in the log."""

    claim: Claim
    offset: int


def parse_claim(key: str, value: str) -> Claim:
    """
    Decode a claim record.

    Raises:
        ValueError: Not a claim record.
    """
    try:
        topic, partition, transactional_id, sequence = json.loads(key)
        body = json.loads(value)
        slot = int(body.get("slot", NO_SLOT))
        return Claim(
            remote=TopicPartition(str(topic), int(partition)),
            transactional_id=str(transactional_id),
            sequence=int(sequence),
            slot=None if slot == NO_SLOT else slot,
            host=str(body.get("host", "")),
        )
    except (TypeError, AttributeError, ValueError) as exc:
        raise ValueError(f"not a claim: {key!r}") from exc


def earlier_claims(
    live: Mapping[str, ClaimRecord], own: Mapping[TopicPartition, int], transactional_id: str
) -> dict[str, Claim]:
    """
    Find claims to fence and tombstone: of other incarnations, on our partitions, before ours (A3).

    Args:
        live: Every live claim, read through our own.
        own: Offset of our claim, by target partition.
        transactional_id: Our own.

    Returns:
        Claims by record key.
    """
    return {
        key: record.claim
        for key, record in live.items()
        if record.claim.transactional_id != transactional_id
        and record.claim.remote in own
        and record.offset < own[record.claim.remote]
    }


def superseded(
    live: Mapping[str, ClaimRecord],
    own: Mapping[TopicPartition, int],
    own_ids: Collection[str],
) -> set[TopicPartition]:
    """Return our partitions that another task claimed after us: we must give them up."""
    return {
        record.claim.remote
        for record in live.values()
        if record.claim.transactional_id not in own_ids
        and record.claim.remote in own
        and record.offset > own[record.claim.remote]
    }


class LiveClaims:
    """
    The claims that are in force, from the records of the claims topic.

    Attributes:
        live: Claims by record key: the effect of every record below `next_offset`, in log order.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self.next_offset = 0
        self.live: dict[str, ClaimRecord] = {}

    def apply(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """
        Apply the next record.

        Raises:
            ForeignRecord: It is not a claim, or the end of one.
        """
        where = f"{self._topic} offset={offset}"
        if key is None:
            raise ForeignRecord(f"{where}: a record without a key")
        try:
            self._apply(offset, key.decode(), value)
        except ValueError as exc:  # also of a key that is no UTF-8
            raise ForeignRecord(f"{where}: {exc}") from exc
        self.next_offset = offset + 1

    def _apply(self, offset: int, key: str, value: bytes | None) -> None:
        if key == MODE_KEY:
            return
        if value is None:
            self.live.pop(key, None)
        else:
            self.live[key] = ClaimRecord(claim=parse_claim(key, value.decode()), offset=offset)

    def skip_to(self, offset: int) -> None:
        """Note that there is no further record below this offset: compaction removes some."""
        self.next_offset = max(self.next_offset, offset)

    def check_identity(self, *, found: object, started_with: object) -> None:
        """
        Compare the id of the topic with that at the start of the flow.

        Raises:
            FatalError: They differ. A task that cannot see earlier claims cannot fence their
                writers, and must not write.
        """
        if found != started_with:
            raise FatalError(
                f"{self._topic} was deleted, or deleted and created again, while the flow ran: "
                f"an older writer may be alive. docs/operations.md says how to start over."
            )
