"""Tasks without a process, for the tests of the driver; the control channel is the real one."""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from eos_mirror.runtime.leases import Command
from eos_mirror.runtime.link import Link, Told
from eos_mirror.runtime.outcome import Ending, Outcome
from eos_mirror.runtime.spec import TaskSpec
from eos_mirror.tasks.messages import encode
from eos_mirror.testing import wait_until
from tests.driver.fakes import SOON


class FakeTask:
    """A task without a process: it sends a heartbeat whenever its supervisor or a test asks."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.loop_age_s = 0.0
        self.orders: Mapping[str, Any] = {}
        self._link = Link(spec)
        self._ending: Ending | None = None
        self._ended = threading.Event()

    def beat(self, *reports: object, events: Sequence[tuple[str, Mapping[str, Any]]] = ()) -> None:
        """Send reports and events. Everything has been handled when this returns."""
        told = Told(reports=[encode(report) for report in reports], events=events)
        answer = self._link.heartbeat(told, loop_age_s=self.loop_age_s, events_dropped=0)
        if answer.orders is not None:
            self.orders = answer.orders
        if answer.command != Command.RUN:
            self.end(Ending(Outcome.STOPPED))

    def end(self, ending: Ending) -> None:
        """Send a BYE and exit."""
        self._link.bye(ending, Told(), within=SOON)
        self._ending = ending
        self._ended.set()

    def wait(self, within: timedelta) -> Ending | None:
        """See `Running`; the supervisor does not wait for long."""
        if not self._ended.is_set():
            self.beat()
            self._ended.wait(min(within.total_seconds(), 0.01))
        return self._ending

    def kill(self) -> None:
        """See `Running`."""
        self._ending = self._ending or Ending(Outcome.STOPPED)
        self._ended.set()

    def close(self) -> None:
        """Drop the connection."""
        self._link.close()


class FakeLauncher:
    """Starts fake tasks. It is a `LocalLauncher`, too."""

    def __init__(self, act: Callable[[FakeTask], None] = FakeTask.beat) -> None:
        """
        Args:
            act: What each task does first. By default, it says HELLO.
        """
        self.tasks: list[FakeTask] = []
        self._act = act

    def warm_up(self, _count: int, _entry: str) -> None:
        """See `LocalLauncher`."""

    def launch(self, spec: TaskSpec) -> FakeTask:
        """See `Launcher`."""
        task = FakeTask(spec)
        self._act(task)
        self.tasks.append(task)
        return task

    def task(self, number: int = 0) -> FakeTask:
        """Return a task once it was started."""
        wait_until(lambda: len(self.tasks) > number, within=SOON, what="a task")
        return self.tasks[number]

    def close(self) -> None:
        """Drop every connection."""
        for task in self.tasks:
            task.close()
