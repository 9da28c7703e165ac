"""One partition that is read: its position, and what an answer says of it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import SourceDataLost
from eos_mirror.ports import Polled
from eos_mirror.wire.batches import Fetched, fetched_batches
from eos_mirror.wire.cluster import Leader
from eos_mirror.wire.connection import MOST_ANSWER_BYTES
from eos_mirror.wire.errors import (
    CORRUPT_MESSAGE,
    INCONSISTENT_TOPIC_ID,
    NOT_LEADER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    Malformed,
    Refused,
)
from eos_mirror.wire.fetched_run import runs_of

NO_EPOCH: Final = -1
NO_REPLICA: Final = -1
UNKNOWN: Final = -1

PREFERRED_S: Final = 300.0
"""A follower is read for this long; then the leader is asked again (metadata.max.age.ms)."""

ELSEWHERE: Final = NOT_LEADER | {
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    INCONSISTENT_TOPIC_ID,
}
"""Another broker must be asked, or this one later. One odd partition does not stop the others."""

KNOWN: Final = ELSEWHERE | {0, OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE}


@dataclass(slots=True)
class Reading:
    """
    A partition that is read.

    Attributes:
        topic_id: Of the topic when reading began: never of another one with the same name.
        next_offset: First record that was not fetched yet.
        epoch: Leader epoch of the record before it; None if unknown.
        stable_end: The last stable offset that a broker reported; None before the first answer.
        reported_end: The end that was handed over last.
        max_bytes: Of one answer; grows for a batch that is larger.
        preferred: A follower to read from, and until when.
        is_lost: Its broker could not be used: others are asked where it is now.
        rests_until: No request before.
        asked_of: Broker that was asked last. Only its answer counts.
    """

    partition: TopicPartition
    topic_id: bytes
    next_offset: int
    epoch: int | None
    max_bytes: int
    stable_end: int | None = None
    reported_end: int | None = None
    preferred: tuple[int, float] | None = None
    is_lost: bool = False
    rests_until: float = 0.0
    asked_of: int | None = None

    @property
    def is_behind(self) -> bool:
        """True if the broker reported records that were not fetched yet."""
        return self.stable_end is not None and self.next_offset < self.stable_end

    def wanted(self, leader: Leader | None) -> tuple[bytes, dict[str, int]]:
        """Return the id of the topic, and the fields of a request for this partition."""
        return self.topic_id, {
            "partition": self.partition.partition,
            "current_leader_epoch": NO_EPOCH if leader is None else leader.epoch,
            "fetch_offset": self.next_offset,
            "last_fetched_epoch": NO_EPOCH if self.epoch is None else self.epoch,
            "log_start_offset": UNKNOWN,
            "partition_max_bytes": self.max_bytes,
        }

    def check(self, one: Mapping[str, Any]) -> None:
        """
        Raise Refused if the partition cannot be read, here or elsewhere.

        Call it for all partitions of an answer first: `answered` moves positions.
        """
        if one["error_code"] not in KNOWN:
            raise Refused(one["error_code"], f"read {self.partition}")

    def answered(self, one: Mapping[str, Any], polled: Polled, *, partition_bytes: int) -> bool:
        """
        Move the position, and add records, an end or a fault to `polled`.

        Args:
            one: What an answer says of this partition.
            partition_bytes: The usual size of an answer.

        Returns:
            False if another broker must be asked, or this one later.
        """
        code = one["error_code"]
        if code in ELSEWHERE:
            return False
        if code:
            self._failed(code, polled)
            return True
        if "diverging_epoch" in one:
            end = one["diverging_epoch"]
            where = f"leader epoch {end['epoch']} ends at {end['end_offset']}"
            self._lost(f"source truncated: {where}", polled)
            return True
        if one["preferred_read_replica"] != NO_REPLICA:
            until = time.monotonic() + PREFERRED_S
            self.preferred = one["preferred_read_replica"], until
        self.stable_end = one["last_stable_offset"]
        if one["records"] and not self._take(one, polled, partition_bytes):
            return False
        at = self.next_offset
        if at >= one["last_stable_offset"] and self.reported_end != at:
            self.reported_end = polled.ends[self.partition] = at
        return True

    def _take(self, one: Mapping[str, Any], polled: Polled, partition_bytes: int) -> bool:
        """Add records; return False if the broker shall be asked for them later."""
        aborted = [(a["producer_id"], a["first_offset"]) for a in one["aborted_transactions"] or ()]
        before = self.next_offset
        try:
            fetched = fetched_batches(one["records"], next_offset=before, aborted=aborted)
        except Malformed as exc:
            self._lost(f"corrupt batch: {exc}", polled)
            return True
        runs, fault = runs_of(self.partition, fetched.batches, next_offset=before)
        polled.runs += runs
        if fault is not None:
            polled.faults[self.partition] = fault
            return True
        self._move(fetched, partition_bytes)
        return self._can_grow(fetched.needed_bytes, polled)

    def _can_grow(self, needed_bytes: int | None, polled: Polled) -> bool:
        """Ask for enough bytes; return False if a broker was asked for enough, and did not obey."""
        if needed_bytes is None:
            return True
        if needed_bytes > MOST_ANSWER_BYTES:
            self._lost(f"corrupt batch: it claims {needed_bytes} bytes", polled)
            return True
        obeyed = needed_bytes > self.max_bytes
        self.max_bytes = max(self.max_bytes, needed_bytes)
        return obeyed

    def _move(self, fetched: Fetched, partition_bytes: int) -> None:
        if fetched.next_offset > self.next_offset:
            self.next_offset = fetched.next_offset
            self.max_bytes = partition_bytes
            last = fetched.batches[-1] if fetched.batches else None
            # a batch that was skipped after it may have a later epoch
            is_last = last is not None and last.next_offset == fetched.next_offset
            self.epoch = last.leader_epoch if last is not None and is_last else None

    def _failed(self, code: int, polled: Polled) -> None:
        if code == OFFSET_OUT_OF_RANGE and self.preferred is not None:
            self.preferred = None  # a follower may be late
        else:
            self._lost("not in the log" if code == OFFSET_OUT_OF_RANGE else "corrupt batch", polled)

    def _lost(self, why: str, polled: Polled) -> None:
        text = f"{self.partition} next_offset={self.next_offset}: {why}"
        polled.faults[self.partition] = SourceDataLost(text)
