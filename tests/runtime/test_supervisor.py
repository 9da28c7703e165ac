"""The supervisor's decisions, with a fake launcher."""

import threading
from datetime import timedelta

import pytest

from eos_mirror.runtime.leases import Applicant
from eos_mirror.runtime.outcome import Ending, ExitCode, Outcome, ending_of
from eos_mirror.runtime.spec import TaskSpec, spec_from_json
from eos_mirror.runtime.supervisor import MOVES, Patience, State, backoff
from tests.runtime.toolbox import Stage, eventually, reaches


class FakeLauncher:
    """A launcher and everything that it launched; no process runs."""

    def __init__(self) -> None:
        self.submissions: list[str] = []
        self.killed_count = 0
        self._ended = threading.Event()
        self.fault: Exception | None = None

    def launch(self, spec: TaskSpec) -> "FakeLauncher":
        """Note the submission."""
        self.submissions.append(spec.submission)
        if self.fault is not None:
            raise self.fault
        self._ended.clear()
        return self

    def wait(self, within: timedelta) -> Ending | None:
        """Wait for an effective kill, the only thing that ends it."""
        ended = self._ended.wait(within.total_seconds())
        return Ending(Outcome.RESTART, "killed by signal 9") if ended else None

    def kill(self) -> None:
        """Lose the first kill, like a cancel that comes before its job; the second one works."""
        self.killed_count += 1
        if self.killed_count > 1:
            self._ended.set()


@pytest.fixture
def fake_launcher() -> FakeLauncher:
    """A launcher that has launched nothing yet."""
    return FakeLauncher()


def test_a_submission_without_hello_is_killed_and_repeated(
    stage: Stage, fake_launcher: FakeLauncher
) -> None:
    """A submission without HELLO is restarted with a reason, and a lost kill is repeated."""
    stage.herd("idle", launcher=fake_launcher, patience=Patience(start=timedelta(milliseconds=300)))

    told = eventually(lambda: stage.heard("task.restarting"))

    assert told[0]["reason"].startswith("no HELLO within 0.3 s: no free slot")
    assert fake_launcher.killed_count == 2
    eventually(lambda: fake_launcher.submissions[:2] == ["0.0", "0.1"])


def test_a_launch_that_fails_is_repeated(stage: Stage, fake_launcher: FakeLauncher) -> None:
    """If no process can be started, the slot tries again and reports why."""
    fake_launcher.fault = OSError("no more processes")
    stage.herd("idle", launcher=fake_launcher)

    told = eventually(lambda: stage.heard("task.restarting")[1:])

    assert told[0]["reason"] == "cannot launch: no more processes"


def test_a_submission_that_waits_is_stopped_at_once(
    stage: Stage, fake_launcher: FakeLauncher
) -> None:
    """A task that never began is killed immediately, without a graceful stop."""
    herd = stage.herd("idle", launcher=fake_launcher)
    eventually(lambda: fake_launcher.submissions)

    herd.stop_all()

    assert reaches(herd, "STOPPED").reason == ""
    assert fake_launcher.killed_count >= 1


def test_a_bye_knows_more_than_the_launcher(stage: Stage, fake_launcher: FakeLauncher) -> None:
    """The task's own report of its end wins over the launcher's view of its process."""
    herd = stage.herd("idle", launcher=fake_launcher)
    eventually(lambda: fake_launcher.submissions)
    task = Applicant(slot=0, submission="0.0", process="p", pid=1, host="h")
    stage.leases.admit(task)

    stage.leases.close(task, Ending(Outcome.FATAL, "NotAuthorized: Write"))
    fake_launcher.kill()
    fake_launcher.kill()

    assert reaches(herd, "FAILED").reason == "NotAuthorized: Write"


def test_a_task_that_may_not_restart_waits_and_can_be_stopped(
    stage: Stage, fake_launcher: FakeLauncher
) -> None:
    """While a cluster refuses the login, a new process would only repeat it."""
    allowed = threading.Event()
    patience = Patience(start=timedelta(milliseconds=300), may_restart=allowed.is_set)
    herd = stage.herd("idle", launcher=fake_launcher, patience=patience)
    eventually(lambda: stage.heard("task.restarting"))
    assert reaches(herd, "BACKOFF").submission == "0.0"
    allowed.set()
    eventually(lambda: fake_launcher.submissions == ["0.0", "0.1"])
    allowed.clear()
    eventually(lambda: len(stage.heard("task.restarting")) == 2)

    herd.stop_all()

    assert reaches(herd, "STOPPED").reason == ""
    assert fake_launcher.submissions == ["0.0", "0.1"]


def test_a_fault_of_the_supervisor_is_shown(stage: Stage, fake_launcher: FakeLauncher) -> None:
    """A bug in the driver ends the slot as FAILED with its text, not as a silent thread."""
    fake_launcher.fault = ValueError("no such entry")
    herd = stage.herd("idle", launcher=fake_launcher)

    assert reaches(herd, "FAILED").reason == "unexpected ValueError: no such entry"


def test_backoff_starts_at_nothing_and_ends_at_twenty_seconds() -> None:
    """The first restart is immediate, then 0.2 s doubling up to 20 s."""
    delays = [backoff(failures).total_seconds() for failures in (0, 1, 2, 3, 4, 8, 9, 1000)]

    assert delays == [0, 0, 0.2, 0.4, 0.8, 12.8, 20, 20]


def test_every_state_can_be_left() -> None:
    """The table of moves has a row for every state, and no dead end."""
    assert set(MOVES) == set(State)
    assert all(MOVES.values())


@pytest.mark.parametrize(
    ("exit_code", "ending"),
    [
        (0, Ending(Outcome.STOPPED)),
        (-9, Ending(Outcome.RESTART, "killed by signal 9")),
        (1, Ending(Outcome.RESTART, "exit code 1 (unexpected)")),
        (ExitCode.WATCHDOG, Ending(Outcome.RESTART, "exit code 71 (WATCHDOG)")),
        (ExitCode.FATAL, Ending(Outcome.FATAL, "exit code 78 (FATAL)")),
    ],
)
def test_an_exit_code_says_what_to_do(exit_code: int, ending: Ending) -> None:
    """A process that could not send BYE is judged by its exit code."""
    assert ending_of(exit_code) == ending


def test_a_spec_survives_the_way_to_the_child(stage: Stage) -> None:
    """JSON there and back changes nothing."""
    spec = stage.spec("idle")

    assert spec_from_json(spec.to_json()) == spec


def test_a_spec_hides_its_secrets(stage: Stage) -> None:
    """Neither the text of a spec nor the error about a broken one shows key or configuration."""
    spec = stage.spec("idle")
    assert "hunter2" not in repr(spec)
    assert stage.server.key not in repr(spec)

    with pytest.raises(ValueError, match=r"^not a task spec$") as failed:
        spec_from_json('{"password": "hunter2"')
    assert failed.value.__suppress_context__
