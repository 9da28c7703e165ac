"""Child processes for audits with `runtime = local`, which needs no Java."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from eos_mirror.audit.completed import completed
from eos_mirror.errors import MirrorError

T = TypeVar("T")
R = TypeVar("R")

_IS_LINUX = sys.platform == "linux"


class LocalPool:
    """As many processes as there are processors. Each process runs many tasks."""

    def __init__(self, *, on_start: Callable[[], None], look: Callable[[], None]) -> None:
        """
        Args:
            on_start: Called first in each process, perhaps after our own exit; pickled.
            look: Called repeatedly while waiting for tasks; may raise.
        """
        self._look = look
        self.slots = len(os.sched_getaffinity(0)) if _IS_LINUX else os.cpu_count() or 1
        self._processes = ProcessPoolExecutor(
            self.slots,
            mp_context=multiprocessing.get_context("spawn"),  # a client does not survive a fork
            initializer=on_start,
        )

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[T, R]]:
        """
        Run tasks and yield each one with its result, in order of completion.

        Raises:
            MirrorError: A task failed, or its process was killed.
        """
        try:
            with _deaf():
                running = {self._processes.submit(work, task): task for task in tasks}
            for done in completed(running, self._look):
                yield running[done], done.result()
        except BrokenProcessPool as exc:
            raise MirrorError(
                "a process that compared records was killed, perhaps for lack of memory. Continue "
                "with --resume when there is more, or use a Spark cluster: verify.spark.master"
            ) from exc
        except MirrorError as exc:
            self._end()
            raise MirrorError(str(exc)) from exc
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        """Kill the processes; the results are not needed."""
        self._processes.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.kill()

    def close(self) -> None:
        """Stop the processes."""
        self._processes.shutdown(cancel_futures=True)


@contextmanager
def _deaf() -> Iterator[None]:
    """
    Block Ctrl-C for the length of the block, so that no process is left half started.

    Processes started meanwhile never receive it. A terminal sends it to all of them, but only the
    parent decides what it means.
    """
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)
