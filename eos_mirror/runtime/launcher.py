"""The interface of the place where tasks run, as a supervisor uses it."""

from datetime import timedelta
from typing import Protocol

from eos_mirror.runtime.outcome import Ending
from eos_mirror.runtime.spec import TaskSpec


class Running(Protocol):
    """One submission that was launched."""

    def wait(self, within: timedelta) -> Ending | None:
        """
        Return how it ended, as far as the place knows; None if it did not end in time.

        A BYE on the control channel has more detail and takes precedence.
        """

    def kill(self) -> None:
        """
        Kill it. This may return before it is dead, or do nothing while it is starting: repeat
        until `wait` returns an ending.
        """


class Launcher(Protocol):
    """A place where tasks run: child processes or a Spark application."""

    def launch(self, spec: TaskSpec) -> Running:
        """
        Start one submission. The calling thread has to outlive it.

        Raises:
            OSError: No process could be started.
        """
