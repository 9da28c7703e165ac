"""Tasks whose executor is lost: Spark reports it long before the lease of the task ends."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eos_mirror.runtime.spark import SparkRuntime
from eos_mirror.runtime.supervisor import Patience
from eos_mirror.testing.spark_cluster import LOOPBACK, spark_cluster
from tests.runtime.toolbox import Stage, eventually, parent_of, running_pid

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkRuntime]:
    """An application with one slot, on a cluster of two workers with one core each."""
    with spark_cluster(tmp_path, cores=1, memory="1g", workers=2) as master:
        settings = {
            "spark.master": master,
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.executor.memory": "512m",
            "spark.cores.max": "1",
        }
        runtime = SparkRuntime.start(settings, app="losses", tasks_count=1)
        yield runtime
        runtime.stop()


def executor(task: int) -> list[int]:
    """Return the JVM of the executor that runs a task."""
    return [parent_of(parent_of(task, b"pyspark.daemon"), b"java")]


def worker(task: int) -> list[int]:
    """Return the Spark worker that started this executor."""
    return [parent_of(executor(task)[0], b"worker.Worker")]


def host(task: int) -> list[int]:
    """Return all processes: nothing is left that could notify the task, or the driver."""
    return [*worker(task), *executor(task), parent_of(task, b"pyspark.daemon"), task]


@pytest.mark.parametrize("victims", [executor, worker, host])
def test_a_task_whose_executor_is_lost_restarts_without_waiting_for_its_lease(
    spark: SparkRuntime, stage: Stage, victims: Callable[[int], list[int]]
) -> None:
    """The lease lasts 30 s: its end would be the reason of the restart. Tasks end before Spark."""
    herd = stage.herd("idle", launcher=spark.launcher("A->B"), patience=Patience())
    pid = running_pid(stage, herd, within_s=90)

    for process in victims(pid):
        os.kill(process, signal.SIGKILL)

    told = eventually(lambda: stage.heard("task.restarting"), within_s=60)
    assert "no heartbeat" not in told[0]["reason"]
    running_pid(stage, herd, other_than=pid, within_s=90)
