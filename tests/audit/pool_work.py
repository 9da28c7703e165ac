"""
What the child processes of a pool run in tests.

Children import this module by its name, so it is no test module.
"""

import os
import signal
from datetime import timedelta

from eos_mirror.errors import TargetUnavailable
from eos_mirror.runtime.lifeline import die_with_parent
from eos_mirror.testing import wait_until


def nothing() -> None:
    """Begin a child process without any preparation."""


def half(number: int) -> int:
    """Return half of an even number; raise for an odd one."""
    if number % 2:
        raise TargetUnavailable(f"{number}: no answer")
    return number // 2


def die(_: int) -> None:
    """End like a process that the kernel kills because it uses too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(_: int) -> None:
    """Wait until a signal ends the process."""
    signal.pause()


def too_late(parent_pid: int) -> None:
    """Begin a child process whose parent is killed before the child asks to die with it."""
    os.write(1, b"ready\n")
    wait_until(
        lambda: os.getppid() != parent_pid,
        within=timedelta(seconds=20),
        what="the end of the parent",
    )
    die_with_parent(parent_pid)
