"""A function that is called in a child process, whatever its clients do to that process."""

import os
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from eos_mirror.errors import ConfigError, MirrorError
from eos_mirror.operate.repeated import Repeated
from tests.operate import repeated_functions as functions

SOON, BRIEFLY = timedelta(seconds=60), timedelta(seconds=3)


def test_one_child_answers_all_calls() -> None:
    """A start costs half a second, so there is one process."""
    with closing(Repeated(functions.pid)) as repeated:
        first, second = repeated(SOON), repeated(SOON)

    assert first == second != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


@pytest.mark.parametrize(
    ("function", "within", "says"),
    [
        (functions.hang_or_pid, BRIEFLY, "no answer within 3 s"),
        (functions.crash_or_pid, SOON, "the process that asks the clusters died"),
    ],
)
def test_a_child_that_hangs_or_dies_is_replaced(
    tmp_path: Path, function: Callable[[str], int], within: timedelta, says: str
) -> None:
    """The call fails, and the next one is answered by another process."""
    with closing(Repeated(partial(function, str(tmp_path)))) as repeated:
        with pytest.raises(MirrorError, match=says):
            repeated(within)

        assert repeated(SOON) != os.getpid()


@pytest.mark.parametrize(
    ("function", "kind", "says"),
    [
        (functions.fail, MirrorError, "no answer from B"),
        (functions.refuse, ConfigError, "line 1: wrong\nline 2: wrong"),
    ],
)
def test_an_error_of_the_function_is_raised_here(
    function: Callable[[], int], kind: type[MirrorError], says: str
) -> None:
    """Its class decides the exit code."""
    with closing(Repeated(function)) as repeated, pytest.raises(MirrorError) as raised:
        repeated(SOON)

    assert (type(raised.value), str(raised.value)) == (kind, says)
