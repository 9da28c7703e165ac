"""What a supervisor needs of the place where its task runs."""

from datetime import timedelta
from typing import Protocol

from eos_mirror.runtime.outcome import Ending
from eos_mirror.runtime.spec import TaskSpec


class Running(Protocol):
    """One submission that was launched."""

    def wait(self, within: timedelta) -> Ending | None:
        """
        How it ended, as far as the place knows; None if it did not end in time.

        A BYE on the control channel knows more and goes first.
        """

    def kill(self) -> None:
        """
        End it by force. May return before it is dead, or do nothing if it is only just
        starting: repeat until `wait` answers.
        """


class Launcher(Protocol):
    """A place where tasks run: child processes or a Spark application."""

    def launch(self, spec: TaskSpec) -> Running:
        """
        Start one submission. The calling thread has to outlive it.

        Raises:
            OSError: No process could be started.
        """
