"""Decides whether records that the target refuses can be moved to the quarantine of the flow."""

from collections.abc import Callable, Sequence

from eos_mirror.core.messages import MirrorConfig
from eos_mirror.core.quarantine import QuarantinedRecord, fault_of, fitting
from eos_mirror.core.records import RecordRun, TopicRecord
from eos_mirror.core.topic_limits import RefusedRecords, TopicLimits
from eos_mirror.errors import RecordRefused
from eos_mirror.ports import Target
from eos_mirror.replication.partition import OwnedPartition

FRESH_S = 5.0
"""The limits of the quarantine are read again after so long: an operator may have raised them."""


class Quarantine:
    """The quarantine of a flow, as one task uses it."""

    def __init__(
        self, topic: str, config: MirrorConfig, target: Target, now: Callable[[], float]
    ) -> None:
        """
        Args:
            now: Monotonic seconds.
        """
        self.topic = topic
        self._flow, self._sender = config.flow, config.sender
        self._target = target
        self._now = now
        self._limits: TopicLimits | None = None
        self._read_at = float("-inf")

    def accepted(
        self, owned: OwnedPartition, run: RecordRun, refused: RefusedRecords
    ) -> Sequence[TopicRecord]:
        """
        Return what to write for the refused records, at least for the first of them.

        Raises:
            RecordRefused: The quarantine would refuse the first of them, too.
        """
        found = _quarantined(str(self._flow), owned, run, refused)
        records = [one.encode() for one in found]
        limits = self._current_limits()
        fault = fault_of(limits, self._sender)
        fits = fitting(records, limits, self._sender) if limits is not None and not fault else ()
        if len(fits) < len(records):  # all copies of a record are moved, or none
            end = refused.start + len(fits)
            first, _ = run.decoded().siblings(end, end + 1)
            fits = fits[: max(0, first - refused.start)]
        if fits:
            return fits
        place = refused.place(run.decoded())
        why = fault or "the record is too large for it. Raise its max.message.bytes"
        raise RecordRefused(f"{self._flow} {owned.source} {place}. {self.topic}: {why}")

    def _current_limits(self) -> TopicLimits | None:
        if self._now() - self._read_at > FRESH_S:
            self._limits = self._target.limits([self.topic]).get(self.topic)
            self._read_at = self._now()
        return self._limits


def _quarantined(
    flow: str, owned: OwnedPartition, run: RecordRun, refused: RefusedRecords
) -> list[QuarantinedRecord]:
    records = run.decoded()
    return [
        QuarantinedRecord(
            flow=flow,
            source=owned.source,
            offset=records.offsets[i],
            topic_id=owned.topic_id,
            code=refused.code,
            reason=refused.reason,
            timestamp=records.timestamps[i],
            key=records.keys[i],
            value=records.values[i],
            headers=records.headers[i],
            copy=i - records.siblings(i, i + 1)[0],
        )
        for i in range(refused.start, refused.stop)
    ]
