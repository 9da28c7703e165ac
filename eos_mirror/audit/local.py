"""Child processes for audits: `runtime = local`, where nothing else needs Java either."""

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
    """As many processes as there are processors. Each is used again for its next task."""

    def __init__(self, *, on_start: Callable[[], None], look: Callable[[], None]) -> None:
        """
        Args:
            on_start: Called first in each process, perhaps when we are dead already; pickled.
            look: Called again and again while tasks are waited for; may raise.
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
        Each task with its result, as they come.

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
                "a process that compared records was killed, perhaps for its memory. Go on with "
                "--resume when there is more, or have a Spark cluster compare: verify.spark.master"
            ) from exc
        except MirrorError as exc:
            self._end()
            raise MirrorError(str(exc)) from exc
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        """Now; nobody wants the results."""
        self._processes.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.kill()

    def close(self) -> None:
        """End the processes."""
        self._processes.shutdown(cancel_futures=True)


@contextmanager
def _deaf() -> Iterator[None]:
    """
    Ctrl-C waits, so that no process is left half started; and processes that are started meanwhile
    never hear it: at a terminal it goes to everybody, and the parent decides what it means.
    """
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)
