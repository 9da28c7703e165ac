"""Tasks as real child processes, from HELLO to every kind of exit."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.runtime.launcher import Running
from eos_mirror.runtime.local import LocalLauncher, LocalRunning
from eos_mirror.runtime.outcome import Ending, ExitCode, Outcome
from eos_mirror.runtime.spec import TaskSpec
from eos_mirror.runtime.supervisor import Patience
from tests.runtime.toolbox import (
    Stage,
    alive,
    children_of,
    eventually,
    kill_hard,
    reaches,
    running_pid,
    started_pid,
)

RESTART_WITHIN_S = 3.0


class Gentle:
    """A launcher whose kill does nothing, so that old copies stay alive."""

    def __init__(self) -> None:
        self.children: list[Running] = []

    def launch(self, spec: TaskSpec) -> Running:
        """Start a local child that only the test can kill."""
        child = LocalLauncher().launch(spec)
        self.children.append(child)
        return _Unkillable()


class _Unkillable:
    def __init__(self) -> None:
        self._killed = threading.Event()

    def wait(self, within: timedelta) -> Ending | None:
        """Wait for the kill; then report the process as dead, although it is not."""
        killed = self._killed.wait(within.total_seconds())
        return Ending(Outcome.RESTART, "believed dead") if killed else None

    def kill(self) -> None:
        """Note the kill, and leave the process alive."""
        self._killed.set()


def test_a_task_gets_its_spec_and_is_heard(stage: Stage) -> None:
    """Configuration goes in over stdin; status and events come out with the heartbeats."""
    herd = stage.herd("echo")
    running_pid(stage, herd)

    status = stage.reported(herd, 0)
    assert status["config"] == {"password": "hunter2"}
    assert eventually(lambda: stage.heard("toy.seen")) == [{"slot": 0, "task": 0}]


def test_a_child_loads_no_heavy_library(stage: Stage) -> None:
    """The memory of a task is the Kafka client's, not that of the driver's libraries."""
    herd = stage.herd("echo")
    running_pid(stage, herd)

    modules = set(stage.reported(herd, 0)["modules"])
    assert not modules & {"pydantic", "pyspark", "opentelemetry", "tenacity", "logging", "asyncio"}


def test_no_secret_is_visible_from_outside(stage: Stage) -> None:
    """Neither key nor configuration is in the arguments or the environment of a child."""
    pid = running_pid(stage, stage.herd("idle"))

    process = Path(f"/proc/{pid}")
    visible = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    assert b"hunter2" not in visible
    assert stage.server.key.encode() not in visible


def test_ctrl_c_reaches_the_driver_alone(stage: Stage) -> None:
    """A child has its own session, so it does not get the terminal's signals."""
    pid = running_pid(stage, stage.herd("idle"))

    assert os.getsid(pid) == pid


def test_new_orders_reach_a_running_task(stage: Stage) -> None:
    """Orders arrive with the next heartbeat, without a restart."""
    herd = stage.herd("idle")
    pid = running_pid(stage, herd)

    stage.server.set_orders({"topics": ["orders"]})

    eventually(lambda: stage.reported(herd, 0)["orders"] == {"topics": ["orders"]})
    assert running_pid(stage, herd) == pid


def test_a_killed_task_is_replaced_at_once(stage: Stage) -> None:
    """kill -9 costs one restart and less than 3 s; the sibling does not notice."""
    herd = stage.herd("idle", "idle")
    pid, sibling = running_pid(stage, herd, 0), running_pid(stage, herd, 1)

    kill_hard(pid)

    running_pid(stage, herd, 0, other_than=pid, within_s=RESTART_WITHIN_S)
    assert running_pid(stage, herd, 1) == sibling
    restarting = stage.heard("task.restarting")
    assert [(told["task"], told["reason"]) for told in restarting] == [(0, "killed by signal 9")]


def test_a_stop_is_graceful(stage: Stage) -> None:
    """The task returns by itself, its last events arrive, and the slot is STOPPED."""
    herd = stage.herd("idle", "idle")
    pids = [running_pid(stage, herd, slot) for slot in (0, 1)]

    herd.stop_all()

    assert [herd.statuses()[slot].state.value for slot in (0, 1)] == ["STOPPED", "STOPPED"]
    assert {fields["task"] for fields in stage.heard("toy.stopped")} == {0, 1}
    assert not any(map(alive, pids))
    assert {fields["reason"] for fields in stage.heard("task.stopped")} == {""}


def test_a_task_that_does_not_stop_is_killed(stage: Stage) -> None:
    """A shutdown kills a task that does not react to the stop."""
    herd = stage.herd("stand_still", patience=Patience(shutdown=timedelta(seconds=1)))
    pid = started_pid(herd)
    eventually(lambda: stage.heard("toy.standing"))

    herd.stop_all()

    assert herd.statuses()[0].reason == "killed: it did not stop within 1 s"
    assert not alive(pid)


def test_an_order_to_restart_replaces_the_process(stage: Stage) -> None:
    """A restart on demand is graceful and counts as no failure."""
    herd = stage.herd("idle")
    pid = running_pid(stage, herd)

    herd.restart(0)

    running_pid(stage, herd, other_than=pid)
    assert stage.heard("toy.stopped")
    assert [told["reason"] for told in stage.heard("task.restarting")] == [""]


def test_an_error_restarts_with_its_reason(stage: Stage) -> None:
    """Cause and reason are those of the error; the delay grows from zero."""
    herd = stage.herd("fail")

    told = eventually(lambda: stage.heard("task.restarting")[2:])

    assert told[0]["cause"] == "TargetUnavailable"
    assert told[0]["reason"] == "B did not answer within 5 s"
    delays = [fields["delay_s"] for fields in stage.heard("task.restarting")[:3]]
    assert delays == [0.0, 0.2, 0.4]
    assert herd.statuses()[0].restarts >= 3


def test_a_fatal_error_is_not_repeated(stage: Stage) -> None:
    """The slot is FAILED with the reason, until it is restarted."""
    herd = stage.herd("fail_for_good")

    status = reaches(herd, "FAILED")

    assert status.reason == "Write on topic A.orders"
    assert (status.submission, status.restarts) == ("0.0", 0)
    herd.restart(0)
    eventually(lambda: herd.statuses()[0].submission == "0.1")
    reaches(herd, "FAILED")


def test_a_task_with_nothing_to_do_rests(stage: Stage) -> None:
    """A task that returns without a stop ends its slot, and is not started again."""
    herd = stage.herd("finish")

    status = reaches(herd, "STOPPED")

    assert (status.submission, status.restarts) == ("0.0", 0)


def test_a_terminated_task_is_replaced(stage: Stage) -> None:
    """SIGTERM ends the process gracefully, and the slot starts another one."""
    herd = stage.herd("idle")
    pid = running_pid(stage, herd)

    os.kill(pid, signal.SIGTERM)

    running_pid(stage, herd, other_than=pid, within_s=RESTART_WITHIN_S)
    assert [told["reason"] for told in stage.heard("task.restarting")] == ["SIGTERM"]
    assert stage.heard("toy.stopped")


def test_a_blocked_call_is_ended_by_the_watchdog(
    stage: Stage, capfd: pytest.CaptureFixture[str]
) -> None:
    """A C call that never returns ends the process with 71, and the driver knows why."""
    stage.leases.expect(0, "0.0")

    child = LocalLauncher().launch(stage.spec("block"))

    reason = "watchdog: commit took longer than 0.2 s"
    assert child.wait(timedelta(seconds=10)) == Ending(
        Outcome.RESTART, f"exit code {ExitCode.WATCHDOG} (WATCHDOG)"
    )
    view = stage.leases.view(0)
    assert view is not None
    assert view.ending == Ending(Outcome.RESTART, reason)
    assert f"{reason}, in block (entries.py:" in capfd.readouterr().err


def test_a_loop_that_stands_still_is_replaced(new_stage: Callable[..., Stage]) -> None:
    """Heartbeats alone do not prove that a task works."""
    stage = new_stage(ttl=timedelta(seconds=1))
    herd = stage.herd("stand_still")

    told = eventually(lambda: stage.heard("task.restarting"))

    assert told[0]["reason"].startswith("its loop stood still for")
    herd.stop_all()


def test_a_stopped_process_is_replaced_and_never_accepted_again(
    new_stage: Callable[..., Stage],
) -> None:
    """An old copy that wakes up after its replacement gets a stop, and exits."""
    stage = new_stage(ttl=timedelta(seconds=1))
    launcher = Gentle()
    herd = stage.herd("idle", launcher=launcher, patience=Patience(shutdown=timedelta(seconds=1)))
    old = running_pid(stage, herd)
    os.kill(old, signal.SIGSTOP)
    new = running_pid(stage, herd, other_than=old)

    os.kill(old, signal.SIGCONT)

    ended = eventually(lambda: launcher.children[0].wait(timedelta(milliseconds=50)))
    assert ended is not None
    assert ended.outcome in {Outcome.STOPPED, Outcome.RESTART}
    assert running_pid(stage, herd) == new
    assert stage.heard("task.restarting")[0]["reason"].startswith("no heartbeat for")
    herd.stop_all()
    assert eventually(lambda: launcher.children[1].wait(timedelta(milliseconds=50)))


def test_a_second_copy_is_rejected(stage: Stage) -> None:
    """Two processes with one submission: the first runs, the second exits with 76."""
    herd = stage.herd("idle")
    pid = running_pid(stage, herd)

    copy = LocalLauncher().launch(stage.spec("idle"))

    assert copy.wait(timedelta(seconds=10)) == Ending(
        Outcome.RESTART, f"exit code {ExitCode.REJECTED} (REJECTED)"
    )
    assert running_pid(stage, herd) == pid


def test_a_child_without_a_driver_ends(stage: Stage) -> None:
    """A child exits if its control server does not run, instead of waiting indefinitely."""
    spec = stage.spec("idle")
    stage.server.stop()

    child = LocalLauncher().launch(spec)

    assert isinstance(child, LocalRunning)
    assert child.wait(timedelta(seconds=15)) == Ending(
        Outcome.RESTART, f"exit code {ExitCode.RESTART} (RESTART)"
    )


def test_waiting_children_are_used_first(stage: Stage) -> None:
    """A start finds its interpreters loaded; a restart gets a fresh one."""
    launcher = LocalLauncher()
    launcher.warm_up(1, "tests.runtime.entries:idle")
    (waiting,) = children_of(os.getpid(), b"eos_mirror.runtime.child")

    herd = stage.herd("idle", launcher=launcher)

    assert running_pid(stage, herd) == waiting
    kill_hard(waiting)
    assert running_pid(stage, herd, other_than=waiting)


def test_waiting_children_end_with_the_launcher() -> None:
    """A refused start leaves no child that waits for a spec."""
    launcher = LocalLauncher()
    launcher.warm_up(2, "tests.runtime.entries:idle")
    try:
        eventually(lambda: len(children_of(os.getpid(), b"eos_mirror.runtime.child")) == 2)
        waiting = children_of(os.getpid(), b"eos_mirror.runtime.child")
    finally:
        launcher.close()

    assert not any(map(alive, waiting))


@pytest.mark.parametrize("entry", ["idle", "stand_still", "spin"])
def test_no_task_outlives_its_driver(entry: str) -> None:
    """
    kill -9 of the driver also kills every child, even a blocked or a busy one, and even when
    nothing reads what the child writes to stderr.
    """
    driver = subprocess.Popen(
        [sys.executable, "-m", "tests.runtime.driver", "local", entry],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with driver:
        assert driver.stdout is not None
        assert driver.stderr is not None
        child = int(driver.stdout.readline())
        assert alive(child)
        driver.stderr.close()

        driver.kill()

    eventually(lambda: not alive(child), within_s=RESTART_WITHIN_S)
