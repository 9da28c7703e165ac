"""Reports to the driver what a mirror task does now, and what it did."""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace

from eos_mirror.core.messages import TaskReport
from eos_mirror.ports import TaskContext
from eos_mirror.replication.counters import Counters
from eos_mirror.replication.holdings import Holdings
from eos_mirror.replication.mode import Mode
from eos_mirror.replication.partition_metrics import PartitionMeter
from eos_mirror.replication.refusals import Refusals
from eos_mirror.replication.stopped import Stopped


@dataclass(frozen=True, slots=True)
class Reporter:
    """Collects a report from the parts of a task."""

    context: TaskContext
    mode: Mode
    counters: Counters
    holdings: Holdings
    stopped: Stopped
    refusals: Refusals
    meter: PartitionMeter

    def report(self, topics: Collection[str]) -> None:
        """
        Report, in parts if many partitions were measured.

        Args:
            topics: The source topics that the task has to mirror.
        """
        first, *others = self.meter.due() or [()]
        report = TaskReport(
            **asdict(self.counters),
            fences=self.mode.fences,
            dropped=self.mode.dropped,
            owned=len(self.holdings.owned),
            paused=self.holdings.pauses.topics,
            pending=self.mode.acquisition.pending_of(topics),
            stopped=self.stopped.reasons,
            waiting=self.mode.acquisition.waiting,
            resumed=self.stopped.taken_resumed(),
            suspects=self.refusals.taken_found(),
            measured=first,
        )
        self.context.report(report)
        for measured in others:
            self.context.report(replace(report, resumed=(), suspects={}, measured=measured))
