"""
Every process of a mirror on Spark, killed and frozen under load: worker, daemon, executor, driver.

The same with toy tasks, and faster, is in tests/runtime/test_spark.py.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from eos_mirror.runtime.outcome import ExitCode
from eos_mirror.testing import wait_until
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.spark_cluster import LOOPBACK, spark_cluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.crashes import SHORTEST_SESSION_MS, assert_copied, drain
from tests.mirror.load import Load
from tests.mirror.toolbox import Mirror, mirror
from tests.runtime.toolbox import alive, children_of, parent_of

pytestmark = [pytest.mark.brokers, pytest.mark.spark, pytest.mark.long]

TASKS = 2
BEYOND_SESSION_S = SHORTEST_SESSION_MS / 1000 + 2
BEYOND_HALF_A_LEASE_S = 18.0
"""A task without its driver for half a lease, 15 s, stops."""


@dataclass
class Flow:
    """A mirror on Spark. The tests of this module harm it one after the other."""

    site: Site
    running: Mirror
    count: int = 0

    def under_load(self, harm: Callable[["Flow"], None]) -> None:
        """Harm the mirror under load; assert that every record arrives once and in order."""
        with Load(self.site).running() as load:
            load.wait_for(5_000)
            harm(self)
            load.wait_for(5_000)
        self.count += load.count
        drain(self.site, self.running)
        assert_copied(self.site, self.count)
        wait_until(
            lambda: all(self.works(task) for task in range(TASKS)),
            within=timedelta(seconds=60),
            what="both tasks to run again",
        )

    def works(self, task: int) -> bool:
        """Return whether the task runs; Spark may replace it after all records have arrived."""
        *_, last = (
            event
            for event in list(self.running.events)
            if event["event"] in {"task.started", "task.restarting"} and event["task"] == task
        )
        return last["event"] == "task.started" and alive(last["pid"])

    @property
    def restarts(self) -> int:
        """Number of tasks that were replaced so far."""
        return len(self.running.found("task.restarting"))

    def worker(self, task: int = 0) -> int:
        """Return the pid of the Python worker that runs a task."""
        return self.running.pid(task)

    def daemon(self) -> int:
        """Return the pid of the daemon that forked the workers."""
        return parent_of(self.worker(), b"pyspark.daemon")

    def jvm(self) -> int:
        """Return the pid of the executor's JVM; in local mode it is also the driver's."""
        return parent_of(self.daemon(), b"java")


def start_flow(site: Site, **spark: object) -> Iterator[Flow]:
    """Run two tasks on Spark for the length of the generator."""
    config = site.config(
        runtime="spark", tasks_max=TASKS, session_timeout_ms=SHORTEST_SESSION_MS, **spark
    )
    with mirror(config) as running:
        running.wait_for("ready", within_s=90)
        yield Flow(site, running)
        assert running.stop(within_s=60) == 0, running.errors


@pytest.fixture(scope="module")
def local(
    tmp_path_factory: pytest.TempPathFactory, source_cluster: Cluster, target_cluster: Cluster
) -> Iterator[Flow]:
    """A flow on `local[2]`: one JVM is driver and executor."""
    folder = tmp_path_factory.mktemp("local")
    yield from start_flow(
        make_site(folder, source_cluster, target_cluster), spark_master="local[2]"
    )


@pytest.fixture(scope="module")
def spark_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone Spark cluster with one worker of two cores."""
    with spark_cluster(tmp_path_factory.mktemp("spark"), cores=2) as address:
        yield address


@pytest.fixture(scope="module")
def standalone(
    tmp_path_factory: pytest.TempPathFactory,
    source_cluster: Cluster,
    target_cluster: Cluster,
    spark_master: str,
) -> Iterator[Flow]:
    """A flow on a standalone cluster: two executors with one slot each."""
    yield from start_flow(
        make_site(tmp_path_factory.mktemp("standalone"), source_cluster, target_cluster),
        spark_master=spark_master,
        spark_driver_host=LOOPBACK,
        spark_driver_bindAddress=LOOPBACK,
        spark_executor_cores=1,
        spark_executor_memory="512m",
        spark_cores_max=2,
    )


def killed(find: Callable[[Flow], int]) -> Callable[[Flow], None]:
    """Return a harm: SIGKILL one process of the flow and wait until a task is replaced."""

    def harm(flow: Flow) -> None:
        before, victim = flow.restarts, find(flow)
        os.kill(victim, signal.SIGKILL)
        flow.running.wait_for("task.restarting", count=before + 1)

    return harm


def frozen(find: Callable[[Flow], int], seconds: float) -> Callable[[Flow], None]:
    """Return a harm: SIGSTOP one process of the flow for a while."""

    def harm(flow: Flow) -> None:
        victim = find(flow)
        os.kill(victim, signal.SIGSTOP)
        try:
            threading.Event().wait(seconds)
        finally:
            os.kill(victim, signal.SIGCONT)

    return harm


@pytest.mark.parametrize("victim", [Flow.worker, Flow.daemon])
def test_a_killed_worker_or_daemon_on_spark_loses_and_doubles_nothing(
    local: Flow, victim: Callable[[Flow], int]
) -> None:
    """After kill -9 of a Python worker, or of the daemon that forked both, tasks are replaced."""
    local.under_load(killed(victim))


def test_a_worker_on_spark_that_slept_longer_than_its_session_doubles_nothing(local: Flow) -> None:
    """The other task has its partitions when it wakes up, so it exits."""
    before = local.restarts
    local.under_load(frozen(Flow.worker, BEYOND_SESSION_S))
    assert local.restarts > before, "no task was replaced: the test proves nothing"


@pytest.mark.parametrize("sleeper", [Flow.daemon, Flow.jvm])
def test_copying_continues_while_spark_is_paused(
    local: Flow, sleeper: Callable[[Flow], int]
) -> None:
    """No record passes through the daemon or the JVM, so their pause replaces no task."""
    before = local.restarts
    local.under_load(frozen(sleeper, BEYOND_SESSION_S))
    assert local.restarts == before


def test_a_driver_paused_longer_than_half_a_lease_continues(local: Flow) -> None:
    """Its tasks stop gracefully without it, and it starts them again."""
    before = local.restarts
    local.under_load(frozen(lambda flow: flow.running.process.pid, BEYOND_HALF_A_LEASE_S))
    local.running.wait_for("task.restarting", count=before + 2)


@pytest.mark.parametrize("victim", [Flow.worker, Flow.daemon, Flow.jvm])
def test_a_killed_process_of_an_executor_loses_and_doubles_nothing(
    standalone: Flow, victim: Callable[[Flow], int]
) -> None:
    """After kill -9 of worker, daemon or executor, Spark starts another and the task resumes."""
    standalone.under_load(killed(victim))


def test_an_executor_that_stands_still_does_not_stop_its_task(standalone: Flow) -> None:
    """The task has its own connections to the driver and to the brokers."""
    before = standalone.restarts
    standalone.under_load(frozen(Flow.jvm, BEYOND_SESSION_S))
    assert standalone.restarts == before


@pytest.mark.parametrize("victim", ["driver", "jvm"])
def test_a_killed_driver_on_spark_leaves_a_flow_that_the_next_run_completes(
    site: Site, victim: str
) -> None:
    """All its processes exit within seconds, and the next run fences their claims."""
    spark = site.config(runtime="spark", tasks_max=2, spark_master="local[2]")
    with Load(site).running() as load:
        with mirror(spark) as first:
            first.wait_for("ready", within_s=90)
            load.wait_for(5_000)
            tasks = [first.pid(task) for task in (0, 1)]
            (jvm,) = children_of(first.process.pid, b"java")
            os.kill(first.process.pid if victim == "driver" else jvm, signal.SIGKILL)
            assert first.wait() == (-9 if victim == "driver" else ExitCode.ORPHAN)
            wait_until(
                lambda: not any(map(alive, [jvm, *tasks])),
                within=timedelta(seconds=15),
                what="the exit of all processes that the driver had started",
            )
        load.wait_for(5_000)
    with mirror(site.config(tasks_max=2), "--once") as second:
        assert second.wait() == 0, second.errors
    assert_copied(site, load.count)


def test_a_signal_to_the_whole_process_group_stops_the_run(site: Site) -> None:
    """As systemd sends it by default, and `timeout`: the driver stops Spark in order."""
    site.produce(1_000)
    with mirror(site.config(runtime="spark")) as running:
        running.wait_for("ready", within_s=120)
        (jvm,) = children_of(running.process.pid, b"java")
        assert os.getpgid(jvm) != running.process.pid
        os.killpg(running.process.pid, signal.SIGTERM)
        assert running.wait() == 0, running.errors[-20:]
        assert running.found("stopped")
    assert not [line for line in running.errors if "Traceback" in line or "py4j" in line]
    assert site.compare().exact
