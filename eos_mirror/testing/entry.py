"""
Starts mirror tasks for tests and the demo: they pause themselves at a point, or fence wrongly.

`EOS_MIRROR_TASK_ENTRY=eos_mirror.testing.entry:mirror` makes every task of a run start here.
"""

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from eos_mirror.ports import TaskChannel
from eos_mirror.replication.config import Fencing
from eos_mirror.tasks import mirror as tasks

ENTRY: Final = "eos_mirror.testing.entry:mirror"
TASK_ENTRY: Final = "EOS_MIRROR_TASK_ENTRY"
PAUSE_AT: Final = "EOS_MIRROR_PAUSE_AT"
FENCING: Final = "EOS_MIRROR_FENCING"
FIRST_SUBMISSION: Final = "0.0"


def mirror(config: Mapping[str, Any], channel: TaskChannel) -> None:
    """
    Mirror as environment variables specify. Implements `ports.TaskEntry`.

    `EOS_MIRROR_PAUSE_AT`: this process pauses itself with SIGSTOP at a named point. `flushed:3`:
    the third time that the first process of task 0 reaches it. `flushed@PATH`: whenever the file
    PATH exists; it is removed, so only one of several tasks pauses. Several of the second form are
    separated by commas.

    `EOS_MIRROR_FENCING`: `naive` or `stable-only`, without claims, as KIP-656 was drafted. Records
    are duplicated when a task is paused.
    """
    tasks.mirror(
        config,
        channel,
        fencing=Fencing(os.environ.get(FENCING, Fencing.CLAIMS.value)),
        reached=pause_points(os.environ.get(PAUSE_AT, ""), submission=channel.submission),
    )


def environ_for(*, pause_at: str = "", fencing: str = "") -> dict[str, str]:
    """Return variables that make the tasks of `eos-mirror run` start here; empty values: unset."""
    switches = {PAUSE_AT: pause_at, FENCING: fencing}
    return {TASK_ENTRY: ENTRY, **{name: value for name, value in switches.items() if value}}


def pause_points(points: str, *, submission: str) -> Callable[[str], None]:
    """Return a function that pauses this process at points given as in `EOS_MIRROR_PAUSE_AT`."""
    if "@" in points:
        return _flag_pauser(dict(point.split("@", 1) for point in points.split(",")))
    name, _, count = points.partition(":")
    # only the first process, or no successor would get past the point
    left = int(count or 1) if submission == FIRST_SUBMISSION else 0

    def reached(where: str) -> None:
        nonlocal left
        if where == name and left:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGSTOP)

    return reached


def _flag_pauser(flags: Mapping[str, str]) -> Callable[[str], None]:
    """Return the function for the form with files; `flags` has a file for each point."""

    def reached(where: str) -> None:
        if where in flags:
            with suppress(FileNotFoundError):
                os.unlink(flags[where])
                os.kill(os.getpid(), signal.SIGSTOP)

    return reached
