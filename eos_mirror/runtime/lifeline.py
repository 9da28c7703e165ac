"""
Ends a task's process with its parent, and receives signals while the process is blocked in C.

Parent: the driver for a local child, `pyspark.daemon` for a Spark worker. SIGHUP is the only
notice that a Spark worker gets of a stopped application, a dead driver or a dead executor.
"""

import ctypes
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from eos_mirror.runtime.outcome import ExitCode

LAST_GASP = timedelta(milliseconds=200)
"""Time limit for the last output before a process exits by force."""

STACK_DEPTH = 6
_PR_SET_PDEATHSIG = 1
_WAKE = 0


def die_with_parent(parent_pid: int | None = None) -> None:
    """
    Have the kernel send SIGTERM when the parent dies. Linux only; elsewhere only `orphaned` helps.

    The kernel watches the thread that started us, so that thread has to outlive us. It does not
    report a parent that is already dead: pass `parent_pid` if nothing else detects that.

    Args:
        parent_pid: This process exits immediately if its parent is another process.

    Source: prctl(2), PR_SET_PDEATHSIG.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if parent_pid is not None and os.getppid() != parent_pid:
        os._exit(ExitCode.ORPHAN)


def last_words(text: str, say: Callable[[], object] | None = None) -> None:
    """
    Write a line to stderr, then call `say`, before the process exits.

    A pipe whose reader is dead raises, a full one blocks, and `say` may do either. Neither may keep
    a process alive that has to exit, so this returns after LAST_GASP at the latest.
    """

    def speak() -> None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"eos-mirror {text}\n")
            sys.stderr.flush()
        if say is not None:
            say()

    speaker = threading.Thread(target=speak, name="last-words", daemon=True)
    speaker.start()
    speaker.join(LAST_GASP.total_seconds())


def main_thread_stack() -> str:
    """Return where the main thread is, innermost call first, in one line."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001 (the documented way)
    calls: list[str] = []
    while frame is not None and len(calls) < STACK_DEPTH:
        code = frame.f_code
        calls.append(f"{code.co_qualname} ({os.path.basename(code.co_filename)}:{frame.f_lineno})")
        frame = frame.f_back
    return " < ".join(calls)


class Lifeline:
    """
    Reports signals and a lost parent to a thread that is not the main one.

    The interpreter writes to its wakeup descriptor inside the C signal handler. A Python handler
    would run only after the main thread has returned from librdkafka.
    """

    def __init__(self) -> None:
        """Handle SIGTERM and SIGHUP. Call it in the main thread, once per process."""
        self._parent_pid = os.getppid()
        self._read_fd, self._write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _ignore)

    @property
    def orphaned(self) -> bool:
        """True if the process that started us is gone."""
        return os.getppid() != self._parent_pid

    def wait(self, timeout: timedelta) -> str | None:
        """Return the name of the next signal; None if none comes in time or on a `wake`."""
        ready, _, _ = select.select([self._read_fd], [], [], timeout.total_seconds())
        if not ready:
            return None
        numbers = [number for number in os.read(self._read_fd, 64) if number != _WAKE]
        return signal.Signals(numbers[0]).name if numbers else None

    def wake(self) -> None:
        """End the current or the next `wait`. Any thread may call it; it never blocks."""
        with suppress(BlockingIOError):  # full of wakes that are not read yet
            os.write(self._write_fd, bytes([_WAKE]))


def _ignore(_number: int, _frame: object) -> None:
    """Do nothing: the signal reaches the wakeup descriptor instead of killing the process."""
