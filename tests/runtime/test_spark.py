"""Tasks as Spark jobs in a local session, shared by the module."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta

import pytest

from eos_mirror.errors import ConfigError
from eos_mirror.runtime.leases import Command
from eos_mirror.runtime.outcome import Ending, ExitCode, Outcome
from eos_mirror.runtime.spark import SparkLauncher, SparkRuntime
from tests.runtime.toolbox import (
    Stage,
    alive,
    children_of,
    eventually,
    kill_hard,
    reaches,
    running_pid,
)

pytestmark = pytest.mark.spark

RESTART_WITHIN_S = 5.0


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkRuntime]:
    """One application with two slots."""
    before = signal.getsignal(signal.SIGINT)
    runtime = SparkRuntime.start({"spark.master": "local[2]"}, app="runtime-tests", tasks_count=2)
    assert signal.getsignal(signal.SIGINT) is before, "Ctrl-C must stay the driver's"
    yield runtime
    runtime.stop()


@pytest.fixture
def launcher(spark: SparkRuntime) -> SparkLauncher:
    """A launcher that submits to the application."""
    return spark.launcher("A->B")


def holder_pid(stage: Stage, slot: int) -> int:
    """Return the pid that holds the lease of the slot; 0 while none does."""
    view = stage.leases.view(slot)
    return view.holder.pid if view and view.holder else 0


def test_a_killed_worker_is_replaced_and_its_sibling_continues(
    stage: Stage, launcher: SparkLauncher
) -> None:
    """Two tasks are two jobs: a killed one is replaced in under 5 s, the other continues."""
    herd = stage.herd("idle", "idle", launcher=launcher)
    pid, sibling = (running_pid(stage, herd, slot, within_s=30) for slot in (0, 1))

    kill_hard(pid)

    running_pid(stage, herd, 0, other_than=pid, within_s=RESTART_WITHIN_S)
    assert running_pid(stage, herd, 1) == sibling
    assert [told["task"] for told in stage.heard("task.restarting")] == [0]
    assert stage.heard("task.restarting")[0]["reason"].startswith("Spark job: ")


def test_a_stop_is_graceful(stage: Stage, launcher: SparkLauncher) -> None:
    """STOP goes in-band: the tasks return by themselves and their jobs succeed."""
    herd = stage.herd("idle", "idle", launcher=launcher)
    pids = [running_pid(stage, herd, slot, within_s=30) for slot in (0, 1)]

    herd.stop_all()

    assert {fields["task"] for fields in stage.heard("toy.stopped")} == {0, 1}
    assert {reaches(herd, "STOPPED", slot).reason for slot in (0, 1)} == {""}
    eventually(lambda: not any(map(alive, pids)))


def test_a_worker_that_ends_itself_is_replaced(stage: Stage, launcher: SparkLauncher) -> None:
    """The watchdog works in a Spark worker too, and the driver knows why it ended the process."""
    stage.herd("block", launcher=launcher)

    told = eventually(lambda: stage.heard("task.restarting")[1:], within_s=30)

    assert told[0]["reason"] == "watchdog: commit took longer than 0.2 s"


def test_a_fatal_error_is_not_repeated(stage: Stage, launcher: SparkLauncher) -> None:
    """FATAL reaches the driver although Spark only reports a failed job."""
    herd = stage.herd("fail_for_good", launcher=launcher)

    status = reaches(herd, "FAILED", within_s=30)

    assert status.reason == "Write on topic A.orders"
    assert status.submission == "0.0"


def test_a_task_told_by_signal_is_replaced(stage: Stage, launcher: SparkLauncher) -> None:
    """SIGHUP, the only notice of a dying executor, stops the task, and the slot starts another."""
    herd = stage.herd("idle", launcher=launcher)
    pid = running_pid(stage, herd, within_s=30)

    os.kill(pid, signal.SIGHUP)

    running_pid(stage, herd, other_than=pid, within_s=RESTART_WITHIN_S)
    assert stage.heard("toy.stopped")
    assert stage.heard("task.restarting")[0]["reason"] == "SIGHUP"


def test_a_job_is_cancelled_by_its_tag(stage: Stage, launcher: SparkLauncher) -> None:
    """A kill ends one job and finally its worker; the sibling's job continues."""
    stage.leases.expect(0, "0.0")
    stage.leases.expect(1, "1.0")
    deaf = launcher.launch(stage.spec("stand_still"))
    other = launcher.launch(stage.spec("idle", slot=1, submission="1.0"))
    pid = eventually(lambda: holder_pid(stage, 0), within_s=30)
    eventually(lambda: holder_pid(stage, 1), within_s=30)

    deaf.kill()

    assert deaf.wait(timedelta(seconds=5))
    eventually(lambda: not alive(pid), within_s=15)
    assert other.wait(timedelta(0)) is None
    stage.leases.command(1, Command.STOP)
    assert other.wait(timedelta(seconds=10)) == Ending(Outcome.STOPPED)


def test_a_worker_runs_the_drivers_python(stage: Stage, launcher: SparkLauncher) -> None:
    """A worker does not run the first python3 of the PATH, which may lack our libraries."""
    herd = stage.herd("echo", launcher=launcher)
    running_pid(stage, herd, within_s=30)

    assert stage.reported(herd, 0)["python"] == sys.executable


@pytest.mark.long
@pytest.mark.parametrize("victim", ["driver", "jvm"])
def test_driver_and_jvm_die_together(victim: str) -> None:
    """Whichever is killed, the other and the tasks are gone within seconds."""
    command = [sys.executable, "-m", "tests.runtime.driver", "spark", "stand_still"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        task = int(driver.stdout.readline())
        (jvm,) = children_of(driver.pid, b"java")

        kill_hard(driver.pid if victim == "driver" else jvm)

        assert driver.wait(10) == (-9 if victim == "driver" else ExitCode.ORPHAN)
    eventually(lambda: not alive(jvm) and not alive(task), within_s=10)


def test_a_contradicted_setting_is_refused() -> None:
    """A contradicted setting is refused before Spark starts."""
    with pytest.raises(ConfigError, match=r"^spark.speculation=true: must be false: "):
        SparkRuntime.start({"spark.speculation": "true"}, app="refused", tasks_count=1)


def test_too_few_slots_are_refused() -> None:
    """The error names the numbers: a task without a slot would wait silently and indefinitely."""
    with pytest.raises(
        ConfigError, match=r"^spark.master=local\[2\] has 2 slots, tasks.max=4 needs 4: "
    ):
        SparkRuntime.start({"spark.master": "local[2]"}, app="refused", tasks_count=4)
