"""All tasks of one control server: a supervisor per slot."""

from eos_mirror.runtime.control import ControlServer, EventSink
from eos_mirror.runtime.launcher import Launcher
from eos_mirror.runtime.supervisor import (
    DEFAULT_PATIENCE,
    MakeSpec,
    Patience,
    SlotStatus,
    Supervisor,
)


class Herd:
    """Starts, shows and stops the supervisors of slots 0 to tasks_count - 1."""

    def __init__(
        self,
        tasks_count: int,
        launcher: Launcher,
        *,
        server: ControlServer,
        make_spec: MakeSpec,
        on_event: EventSink,
        patience: Patience = DEFAULT_PATIENCE,
    ) -> None:
        self._supervisors = [
            Supervisor(
                slot,
                launcher,
                leases=server.leases,
                make_spec=make_spec,
                on_event=on_event,
                patience=patience,
            )
            for slot in range(tasks_count)
        ]

    def start(self) -> None:
        """Submit every task. Returns immediately."""
        for supervisor in self._supervisors:
            supervisor.start()

    def restart(self, slot: int) -> None:
        """Replace the process of one task, even if the task is FAILED."""
        self._supervisors[slot].restart()

    def statuses(self) -> dict[int, SlotStatus]:
        """Return the `Supervisor.status` of every slot."""
        return {supervisor.slot: supervisor.status() for supervisor in self._supervisors}

    def stop_all(self) -> None:
        """
        Stop every task in parallel, and wait.

        Call it before the control server and Spark are stopped. Tasks receive STOP through the
        server, and jobs of a stopped Spark fail in odd ways.
        """
        for supervisor in self._supervisors:
            supervisor.stop()
        for supervisor in self._supervisors:
            supervisor.join()
