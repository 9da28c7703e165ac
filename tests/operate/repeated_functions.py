"""Functions for a child process, which imports them from here."""

import os
import signal
import time

from eos_mirror.errors import ConfigError, MirrorError


def pid() -> int:
    """Return the process id."""
    return os.getpid()


def hang_or_pid(folder: str) -> int:
    """Hang at the first call; later return the process id."""
    if _is_first(folder):
        time.sleep(600)
    return os.getpid()


def crash_or_pid(folder: str) -> int:
    """Die at the first call, as a client of the library may; later return the process id."""
    if _is_first(folder):
        os.kill(os.getpid(), signal.SIGSEGV)
    return os.getpid()


def fail() -> int:
    """Fail as a cluster that does not answer."""
    raise MirrorError("no answer from B")


def refuse() -> int:
    """Fail as a configuration that is wrong."""
    raise ConfigError("line 1: wrong", "line 2: wrong")


def _is_first(folder: str) -> bool:
    mark = os.path.join(folder, "called")
    was_called = os.path.exists(mark)
    with open(mark, "w", encoding="utf-8"):
        return not was_called
