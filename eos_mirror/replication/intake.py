"""Passes polled records that are ours, new and accepted by the target to the open transaction."""

from collections.abc import Callable
from dataclasses import dataclass

from eos_mirror.core.messages import MirrorConfig
from eos_mirror.core.records import Position, RecordRun, TopicPartition
from eos_mirror.core.topic_limits import RefusedRecords
from eos_mirror.errors import PartitionStopped, RecordRefused, UnreadableBatch
from eos_mirror.ports import Polled, SourceMetadata
from eos_mirror.replication.holdings import Holdings
from eos_mirror.replication.mode import Mode, Writer
from eos_mirror.replication.partition import OwnedPartition
from eos_mirror.replication.refusals import Refusals
from eos_mirror.replication.source_faults import explain, went_back

Faults = dict[TopicPartition, PartitionStopped]
Took = Callable[[TopicPartition, RecordRun], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """
    Passes polled records to the writer.

    Attributes:
        took: Called with each run that was handed to the writer, and its remote partition.
    """

    config: MirrorConfig
    holdings: Holdings
    mode: Mode
    refusals: Refusals
    metadata: SourceMetadata
    took: Took

    def take(self, polled: Polled, writer: Writer) -> Faults:
        """
        Pass the records that can be mirrored to the writer.

        Returns:
            Partitions that cannot be mirrored any further from their positions, with the cause.

        Raises:
            RefusedByTarget: The client refused a record midway. What was polled must be read
                again.
        """
        faults: Faults = {}
        for run in polled.runs:
            owned = self.holdings.readable(run.partition, faults)
            if owned is not None:
                self._mirror_readable(owned, run, writer, faults)
        for partition, fault in polled.faults.items():
            owned = self.holdings.readable(partition, faults)
            if owned is not None:
                faults[partition] = explain(self.config.flow, owned, fault, metadata=self.metadata)
        for partition, end in polled.ends.items():
            owned = self.holdings.readable(partition, faults)
            # None: a record polled before this end was not accepted, so the end lies after it
            if owned is not None and end > owned.position.next_offset:
                # between are control, aborted or compacted records: nothing to mirror. A later
                # leader may have written them, so this position has no epoch: with the epoch of
                # our last record, it would appear as an end that the log has lost
                owned.position = Position(end)
                self.holdings.at_end[partition] = owned
        return faults

    def _mirror_readable(
        self, owned: OwnedPartition, run: RecordRun, writer: Writer, faults: Faults
    ) -> None:
        """Mirror a run up to the first batch that must be decoded and cannot be."""
        try:
            self._mirror(owned, run, writer, faults)
        except UnreadableBatch as exc:
            if exc.before is not None:
                self._mirror(owned, exc.before, writer, faults)
            if owned.source not in self.holdings.held_back:
                faults.setdefault(owned.source, exc)

    def _mirror(
        self, owned: OwnedPartition, run: RecordRun, writer: Writer, faults: Faults
    ) -> None:
        left = run.from_offset(owned.position.next_offset)
        if left is None:
            return
        fault: PartitionStopped | None = went_back(self.config.flow, owned, left)
        while left is not None and fault is None:
            good, refused = self.refusals.split(owned, left)
            if good is not None and not self._send(owned, good, writer):
                return
            if refused is None:
                return
            fault = self._refuse(owned, left, refused)
            if fault is None and self.refusals.was_found(owned, left, refused):
                # the next batch may be refused, too: without a commit before it, the search for
                # that record would forget this one, and the two would alternate endlessly
                self.holdings.hold_back([owned])
                return
            left = left.from_offset(owned.position.next_offset)
        if fault is not None:
            faults[owned.source] = fault

    def _refuse(
        self, owned: OwnedPartition, run: RecordRun, refused: RefusedRecords
    ) -> RecordRefused | None:
        """Drop refused records if the mode does that; otherwise return why the partition stops."""
        if not self.mode.drops:
            place = refused.place(run.decoded())
            return RecordRefused(f"{self.config.flow} {owned.source} {place}")
        try:
            self.mode.drop(owned, run, refused)
        except RecordRefused as exc:
            return exc
        return None

    def _send(self, owned: OwnedPartition, run: RecordRun, writer: Writer) -> bool:
        """Send the run; return True if all of it had room, otherwise hold the partition back."""
        sent = writer.add(owned, run)
        if sent is not None:
            self.took(owned.remote, sent)
        if owned.position.next_offset < run.next_offset:
            self.holdings.hold_back([owned])
            return False
        return True
