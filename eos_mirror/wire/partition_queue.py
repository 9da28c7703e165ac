"""The unacknowledged batches of one partition, and what happened to the others."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from eos_mirror.core.suspects import Refusal
from eos_mirror.wire.errors import name_of
from eos_mirror.wire.packing import Parcel

IN_FLIGHT: Final = 5
"""Batches of a partition that may be unacknowledged: the broker remembers as many."""

FIRST_PAUSE_S: Final = 0.001


@dataclass(slots=True)
class Book:
    """
    What happened to the batches of one partition since the last `begin`.

    Attributes:
        first, last: Downstream offsets of the first and the last record; None if there are none.
        count: Records handed over.
        refusal: Why the first refused batch was refused.
    """

    first: int | None = None
    last: int | None = None
    count: int = 0
    refusal: Refusal | None = None


@dataclass(slots=True)
class PartitionQueue:
    """
    The batches of one partition.

    Attributes:
        sequence: Of the next batch.
        round: Number of the `begin` after which a batch was queued last.
        is_open: A batch was acknowledged since then.
        returned: Batches that were answered with `AGAIN`, in order.
        again_at: When they are sent again.
        node: Broker that the last batch was sent to.
    """

    waiting: deque[Parcel] = field(default_factory=deque)
    flying: deque[Parcel] = field(default_factory=deque)
    returned: list[Parcel] = field(default_factory=list)
    sequence: int = 0
    round: int = 0
    is_open: bool = False
    again_at: float = 0.0
    pause_s: float = FIRST_PAUSE_S
    node: int | None = None

    def enter(self, number: int, *, new_epoch: bool) -> None:
        """
        Note that a batch is queued.

        Args:
            number: Of the last `begin`.
            new_epoch: The producer has had a new epoch since the last batch: sequences begin at 0.
        """
        if new_epoch:
            self.sequence = 0
        if self.round != number:
            self.round, self.is_open = number, False

    @property
    def is_busy(self) -> bool:
        """True if a batch is not acknowledged."""
        return bool(self.waiting or self.flying or self.returned)

    def may_send(self, now: float) -> bool:
        """Return True if the next batch may be sent now."""
        if not self.waiting or self.returned or now < self.again_at:
            return False
        if not self.flying:
            return True
        alone = self.waiting[0].alone or self.flying[-1].alone
        return self.is_open and not alone and len(self.flying) < IN_FLIGHT


def refusal_of(parcel: Parcel, one: Mapping[str, Any]) -> Refusal:
    """Return why a batch was refused, and which of its records the broker named."""
    offsets, errors = parcel.offsets, one["record_errors"] or ()
    named = tuple(
        offsets[error["batch_index"]]
        for error in errors
        if 0 <= error["batch_index"] < len(offsets)
    )
    reasons = [one["error_message"], *(error["batch_index_error_message"] for error in errors)]
    code = name_of(one["error_code"])
    return Refusal(
        code=code,
        reason=next(filter(None, reasons), code),
        first=offsets[0],
        end=offsets[-1] + 1,
        records=parcel.batch.count,
        named=named,
    )
