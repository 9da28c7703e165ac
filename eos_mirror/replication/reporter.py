"""Reports to the driver what a mirror task does now, and what it did."""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace

from eos_mirror.core.messages import TaskReport
from eos_mirror.core.records import TopicPartition
from eos_mirror.ports import TaskContext
from eos_mirror.replication.counters import Counters
from eos_mirror.replication.operator_orders import OperatorOrders
from eos_mirror.replication.partition_metrics import PartitionMeter
from eos_mirror.replication.refusals import Refusals
from eos_mirror.replication.stopped import Stopped


@dataclass(slots=True)
class Reporter:
    """Collects a report from the parts of a task."""

    context: TaskContext
    counters: Counters
    operators: OperatorOrders
    stopped: Stopped
    refusals: Refusals
    meter: PartitionMeter
    _held: Collection[TopicPartition] = frozenset()

    def report(self, topics: Collection[str]) -> None:
        """
        Report, in parts if many partitions were measured.

        Args:
            topics: The source topics that the task has to mirror.
        """
        mode, holdings = self.operators.mode, self.operators.holdings
        first, *others = self.meter.due() or [()]
        report = TaskReport(
            **asdict(self.counters),
            fences=mode.fences,
            dropped=mode.dropped,
            quarantined=mode.quarantined,
            owned=len(holdings.owned),
            holds=self._changed_holdings(),
            paused=holdings.pauses.topics,
            stopped_topics=tuple(sorted(self.operators.stopped_topics)),
            pending=mode.acquisition.pending_of(topics),
            stopped=self.stopped.reasons,
            waiting={**mode.acquisition.waiting, **holdings.waiting},
            resumed=self.stopped.taken_resumed(),
            suspects=self.refusals.taken_found(),
            throttles=self.operators.throttles,
            measured=first,
        )
        self.context.report(report)
        for measured in others:
            again = replace(report, holds=None, resumed=(), suspects={}, measured=measured)
            self.context.report(again)

    def _changed_holdings(self) -> tuple[TopicPartition, ...] | None:
        owned = self.operators.holdings.owned.keys()
        if owned == self._held:
            return None
        self._held = frozenset(owned)
        return tuple(sorted(owned))
