"""Child processes that compare: their results, their faults, and that all of them exit."""

import os
import subprocess
import sys
from contextlib import closing
from datetime import timedelta

import pytest

from eos_mirror.audit.local import LocalPool
from eos_mirror.errors import MirrorError
from eos_mirror.testing import wait_until
from tests.audit.pool_work import die, half, nothing, sleep


def test_each_task_comes_back_with_its_result() -> None:
    """Every task returns with its result, and the same processes work on the next tasks."""
    with closing(LocalPool(on_start=nothing, look=nothing)) as pool:
        assert dict(pool.map(half, range(0, 40, 2))) == {n: n // 2 for n in range(0, 40, 2)}
        assert list(pool.map(half, [8])) == [(8, 4)]


def test_a_task_that_fails_says_why() -> None:
    """The error has the message of the task, with a class that ends the command."""
    with (
        closing(LocalPool(on_start=nothing, look=nothing)) as pool,
        pytest.raises(MirrorError, match="3: no answer") as failed,
    ):
        list(pool.map(half, [2, 3, 4]))
    assert type(failed.value) is MirrorError


def test_a_process_that_is_killed_is_not_waited_for() -> None:
    """A pool with a killed process raises an error with a probable cause."""
    with (
        closing(LocalPool(on_start=nothing, look=nothing)) as pool,
        pytest.raises(MirrorError, match="was killed, perhaps for lack of memory"),
    ):
        list(pool.map(die, [1]))


class EnoughError(Exception):
    """An error that the `look` callback raises."""


def enough() -> None:
    """Raise when the pool calls back for the first time."""
    raise EnoughError


def test_whoever_looks_while_nothing_ends_may_end_it() -> None:
    """An error of the `look` callback ends the pool, as Ctrl-C does, and kills its processes."""
    with closing(LocalPool(on_start=nothing, look=enough)) as pool, pytest.raises(EnoughError):
        list(pool.map(sleep, range(8)))


BUSY = """
import os
from functools import partial
from eos_mirror.audit.local import LocalPool
from eos_mirror.runtime.lifeline import die_with_parent
from tests.audit.pool_work import half, sleep
pool = LocalPool(on_start=partial(die_with_parent, os.getpid()), look=lambda: None)
assert list(pool.map(half, [4])) == [(4, 2)]
print("ready", flush=True)
list(pool.map(sleep, range(8)))
"""

STARTING = """
import os
from functools import partial
from eos_mirror.audit.local import LocalPool
from tests.audit.pool_work import sleep, too_late
pool = LocalPool(on_start=partial(too_late, os.getpid()), look=lambda: None)
list(pool.map(sleep, range(8)))
"""


@pytest.mark.parametrize("program", [BUSY, STARTING], ids=["busy", "starting"])
def test_processes_do_not_outlive_a_parent_that_is_killed(program: str) -> None:
    """Busy and starting processes exit when their parent is killed."""
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
    """Return whether a process group still has members."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
