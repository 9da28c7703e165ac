"""
How a task ends, and which exit code of its process says so.

| code | name | the process exited because | next |
| --- | --- | --- | --- |
| 0 | STOPPED | it was ordered to stop, or there was nothing left to do | nothing |
| 70 | ORPHAN | its driver is gone and the task did not return within the grace period | - |
| 71 | WATCHDOG | a watched block exceeded its budget | another process |
| 75 | RESTART | of an error that a new process cures, a signal or an order | another process |
| 76 | REJECTED | the driver rejected it: a stale or a second copy | another process |
| 78 | FATAL | of an error that a new process does not cure | stop and report why |

Anything else (a signal, a crash) counts as RESTART.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Outcome(StrEnum):
    """How a task ended, and so what its supervisor does next."""

    STOPPED = "stopped"
    RESTART = "restart"
    FATAL = "fatal"


class ExitCode(IntEnum):
    """Exit codes of a task's process; the table is in the module's docstring."""

    STOPPED = 0
    ORPHAN = 70
    WATCHDOG = 71
    RESTART = 75
    REJECTED = 76
    FATAL = 78


@dataclass(frozen=True, slots=True)
class Ending:
    """
    The end of one submission.

    Attributes:
        outcome: What to do next.
        reason: One line for people; empty if this end was requested.
        cause: Class of the error that ended it; empty if it was no error of the task.
    """

    outcome: Outcome
    reason: str = ""
    cause: str = ""

    @property
    def exit_code(self) -> ExitCode:
        """The code that a process with this ending exits with."""
        return ExitCode[self.outcome.name]


def ending_of(exit_code: int) -> Ending:
    """
    Return the ending that an exit code shows: the process died before it could send a BYE.

    Args:
        exit_code: As `subprocess` gives it; minus the signal number for a killed process.
    """
    if exit_code == ExitCode.STOPPED:
        return Ending(Outcome.STOPPED)
    if exit_code < 0:
        return Ending(Outcome.RESTART, f"killed by signal {-exit_code}")
    known = {code.value: code.name for code in ExitCode}
    reason = f"exit code {exit_code} ({known.get(exit_code, 'unexpected')})"
    return Ending(Outcome.FATAL if exit_code == ExitCode.FATAL else Outcome.RESTART, reason)
