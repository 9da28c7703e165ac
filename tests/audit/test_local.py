"""Child processes that compare: results, faults, and no process that is left."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from datetime import timedelta

import pytest

from eos_mirror.audit.local import LocalPool
from eos_mirror.errors import MirrorError, TargetUnavailable
from eos_mirror.runtime.lifeline import die_with_parent
from eos_mirror.testing import wait_until


def nothing() -> None:
    """What a process begins with here."""


def half(number: int) -> int:
    """The pool's work."""
    if number % 2:
        raise TargetUnavailable(f"{number}: no answer")
    return number // 2


def die(_: int) -> None:
    """As the kernel does to who takes too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(_: int) -> None:
    """Until a signal ends it."""
    signal.pause()


def test_each_task_comes_back_with_its_result() -> None:
    """And the same processes do the next tasks."""
    with closing(LocalPool(on_start=nothing, look=nothing)) as pool:
        assert dict(pool.map(half, range(0, 40, 2))) == {n: n // 2 for n in range(0, 40, 2)}
        assert list(pool.map(half, [8])) == [(8, 4)]


def test_a_task_that_fails_says_why() -> None:
    """In the words of the error, as an end of the command and not of a task."""
    with (
        closing(LocalPool(on_start=nothing, look=nothing)) as pool,
        pytest.raises(MirrorError, match="3: no answer") as failed,
    ):
        list(pool.map(half, [2, 3, 4]))
    assert type(failed.value) is MirrorError


def test_a_process_that_is_killed_is_not_waited_for() -> None:
    """With what to do about it."""
    with (
        closing(LocalPool(on_start=nothing, look=nothing)) as pool,
        pytest.raises(MirrorError, match="was killed, perhaps for lack of memory"),
    ):
        list(pool.map(die, [1]))


class EnoughError(Exception):
    """What somebody who looks may raise."""


def enough() -> None:
    """The first time."""
    raise EnoughError


def test_whoever_looks_while_nothing_ends_may_end_it() -> None:
    """As Ctrl-C does; the processes are killed."""
    with closing(LocalPool(on_start=nothing, look=enough)) as pool, pytest.raises(EnoughError):
        list(pool.map(sleep, range(8)))


def too_late(parent_pid: int) -> None:
    """What a process begins with whose parent is killed before it hears of the kernel."""
    os.write(1, b"ready\n")
    wait_until(
        lambda: os.getppid() != parent_pid,
        within=timedelta(seconds=20),
        what="the end of the parent",
    )
    die_with_parent(parent_pid)


BUSY = """
import os
from functools import partial
from eos_mirror.audit.local import LocalPool
from eos_mirror.runtime.lifeline import die_with_parent
from tests.audit.test_local import half, sleep
pool = LocalPool(on_start=partial(die_with_parent, os.getpid()), look=lambda: None)
assert list(pool.map(half, [4])) == [(4, 2)]
print("ready", flush=True)
list(pool.map(sleep, range(8)))
"""

STARTING = """
import os
from functools import partial
from eos_mirror.audit.local import LocalPool
from tests.audit.test_local import sleep, too_late
pool = LocalPool(on_start=partial(too_late, os.getpid()), look=lambda: None)
list(pool.map(sleep, range(8)))
"""


@pytest.mark.parametrize("program", [BUSY, STARTING], ids=["busy", "starting"])
def test_processes_do_not_outlive_a_parent_that_is_killed(program: str) -> None:
    """Whatever they are at."""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        parent.kill()
        parent.wait(10)
        wait_until(
            lambda: not is_there(parent.pid),
            within=timedelta(seconds=20),
            what="the processes of the pool to end",
        )


def is_there(group: int) -> bool:
    """Whether a process group still has members."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
