"""
Spark for audits: many short tasks, in a separate application.

Unlike in the mirror's application, workers are reused and a cluster repeats failed tasks. An audit
inside the mirror's application would wait indefinitely for a slot, because its tasks never end.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from eos_mirror.audit.completed import completed
from eos_mirror.errors import MirrorError

if TYPE_CHECKING:
    from pyspark import SparkContext

T = TypeVar("T")
R = TypeVar("R")

SLOT_WITHIN_S = 60.0
JOBS_PER_SLOT = 2
"""So that a free slot finds its next task already submitted."""


class SparkPool:
    """A running Spark application that maps functions over tasks."""

    def __init__(
        self,
        context: "SparkContext",
        *,
        describe_failure: Callable[[Exception], str],
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            context: Context of an application that is not shared; closed with the pool.
            describe_failure: Summarizes a failure that Spark reports in a hundred lines in one.
            look: Called repeatedly while waiting for tasks; may raise.
        """
        self._look = look
        self._context = context
        self._describe_failure = describe_failure
        # py4j logs every call that Ctrl-C interrupts to the root logger, with its stack
        logging.getLogger().addHandler(logging.NullHandler())

    def wait_for_a_slot(self, master: str) -> None:
        """
        Wait for a free slot. Spark itself would wait indefinitely, and only write that to its log.

        Raises:
            MirrorError: There is no free slot within `SLOT_WITHIN_S`.
        """
        with ThreadPoolExecutor(1) as thread:
            first = thread.submit(self._run, bool, None)
            try:
                first.result(SLOT_WITHIN_S)
            except TimeoutError as exc:
                raise MirrorError(
                    f"Spark gave no slot within {SLOT_WITHIN_S:.0f} s: {master} has no free cores. "
                    f"Stop something there, or set verify.spark.master = local[*]"
                ) from exc
            finally:
                self._context.cancelAllJobs()  # or the thread would wait on

    @property
    def slots(self) -> int:
        """Return how many tasks run at the same time, as far as Spark knows."""
        return int(self._context.defaultParallelism)

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[T, R]]:
        """
        Run tasks and yield each one with its result, in order of completion.

        Raises:
            MirrorError: A task failed as often as Spark repeats it.
        """
        with ThreadPoolExecutor(max(1, self.slots * JOBS_PER_SLOT)) as threads:
            try:
                running = {threads.submit(self._run, work, task): task for task in tasks}
                for done in completed(running, self._look):
                    yield running[done], done.result()
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                self._context.stop()  # also ends a job that a thread is just starting
                raise

    def _run(self, work: Callable[[T], R], task: T) -> R:
        self._context.setJobDescription(str(task))
        try:
            (result,) = self._context.parallelize([task], 1).map(work).collect()
        except Exception as exc:
            raise MirrorError(self._describe_failure(exc)) from exc
        return result

    def close(self) -> None:
        """Stop the application."""
        self._context.stop()
