"""Measures the first catch-up of the flows of a run, for someone who watches it."""

from collections.abc import Sequence

from eos_mirror.core.catch_up import CatchUp
from eos_mirror.core.side import Side
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.driver.partition_metrics import FlowPartitionMetrics
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.settings import clients


class FirstCatchUp:
    """
    Asks the clusters of each flow until all that its source had at first is mirrored.

    Its clients are its own, so it delays nothing of the run. Used by one thread.
    """

    def __init__(self, flows: Sequence[FlowRunner]) -> None:
        self._flows = [_Flow(one) for one in flows]

    def look(self) -> None:
        """
        Ask the clusters of the flows that have not caught up.

        Raises:
            NotAuthorized: A right to Describe is missing: there is nothing to watch.
        """
        for one in self._flows:
            one.look()

    @property
    def is_over(self) -> bool:
        """Return True once every flow has caught up, or failed."""
        return all(one.is_over for one in self._flows)

    @property
    def done(self) -> int:
        """Return the offsets of all flows that were mirrored since the first look."""
        return sum(one.progress.done for one in self._flows)

    @property
    def total(self) -> int:
        """Return the offsets of all flows that had to be mirrored at the first look."""
        return sum(one.progress.total for one in self._flows)


class _Flow:
    """The first catch-up of one flow."""

    def __init__(self, runner: FlowRunner) -> None:
        self._runner = runner
        self._metrics = FlowPartitionMetrics(
            runner.settings,
            ClusterMetadata(clients.source_admin(runner.settings), side=Side.SOURCE),
            lambda: runner.topics.partitions,
        )
        self.progress = CatchUp()

    @property
    def is_over(self) -> bool:
        has_ended = self._runner.has_failed or not self._runner.topics.partitions
        return self.progress.is_over or has_ended

    def look(self) -> None:
        if self.is_over:
            return
        runner, remotes = self._runner, dict(self._runner.topics.partitions)
        idle = {*runner.stopped, *runner.waiting, *runner.ordered()}
        self._metrics.look()
        self.progress.look(
            self._metrics.stretches(), left_out={remotes[p] for p in idle if p in remotes}
        )
