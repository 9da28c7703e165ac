"""
The `spark.*` settings that endless tasks need, and the ones that would break them.

A mirror task is a Spark job that never ends by itself. Several features of Spark are made for
jobs that do. Each row of ENFORCED is one that was seen to kill, duplicate or starve such a task.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from eos_mirror.errors import ConfigError

ENFORCED: Mapping[str, tuple[str, str]] = {
    "spark.task.maxFailures": (
        "1",
        "the supervisor restarts tasks; Spark would repeat them without backoff, never "
        "forget a failure, and start a second copy of the same submission",
    ),
    "spark.speculation": ("false", "a speculative copy is a second mirror task"),
    "spark.excludeOnFailure.enabled": (
        "false",
        "after a few crashes no executor would be allowed to run the task",
    ),
    "spark.python.worker.idleTimeoutSeconds": ("0", "it ends healthy tasks that never finish"),
    "spark.python.worker.killOnIdleTimeout": ("false", "it ends healthy tasks that never finish"),
    "spark.python.use.daemon": (
        "true",
        "without the daemon, a worker does not notice the death of its executor",
    ),
    "spark.python.worker.reuse": (
        "false",
        "a reused worker keeps the clients of the task before it alive",
    ),
}
"""By key: the required value, and why no other is allowed."""

DEFAULTS: Mapping[str, str] = {
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.python.task.killTimeout": "2s",
    "spark.executor.heartbeat.maxFailures": "12",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

LOCAL_DEFAULTS: Mapping[str, str] = {
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # the JVM only starts Python workers: half the CPU until ready (benchmarks/startup.py)
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
"""With a `local` master: the heap holds no data, and no other host connects to the driver."""

_LOCAL = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*(\d+)\s*)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]")
_LOG4J = Path(__file__).with_name("log4j2.properties")


def spark_settings(user: Mapping[str, str], *, tasks_count: int) -> dict[str, str]:
    """
    Return the user's `spark.*` settings, completed.

    The default of `spark.master` is `local` with a slot for every task. There may be more tasks
    than cores: tasks wait for brokers most of the time.

    Raises:
        ConfigError: A setting contradicts ENFORCED, or the master has too few slots. It lists
            every fault.
    """
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    settings = {**DEFAULTS, "spark.pyspark.python": python}
    master = user.get("spark.master", f"local[{max(tasks_count, _cores_count())}]")
    if _LOCAL.fullmatch(master):
        settings |= LOCAL_DEFAULTS
    settings |= {**user, "spark.master": master.replace("*", str(_cores_count()))}
    faults = [*_contradictions(user), *_shortage(settings, tasks_count)]
    if faults:
        raise ConfigError(*faults)
    settings |= {key: value for key, (value, _) in ENFORCED.items()}
    options = settings.get("spark.driver.extraJavaOptions", "")
    if "log4j" not in options:
        quiet = f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"
        settings["spark.driver.extraJavaOptions"] = f"{options} {quiet}".strip()
    return settings


def slots_count(settings: Mapping[str, str]) -> int | None:
    """Return how many tasks can run at the same time; None where only the cluster knows."""
    cores_per_task = float(settings.get("spark.task.cpus", "1"))
    executors_count, cores_count = _executors(settings)
    if executors_count is None or cores_count is None:
        return None
    return executors_count * int(cores_count / cores_per_task)


def _executors(settings: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return the number of executors, and the cores of each."""
    master = settings["spark.master"]
    local = _LOCAL.fullmatch(master)
    if local:
        threads = local.group(1) or "1"
        return 1, _cores_count() if threads == "*" else int(threads)
    cluster = _LOCAL_CLUSTER.fullmatch(master)
    if cluster:
        return int(cluster.group(1)), int(cluster.group(2))
    if _is(settings, "spark.dynamicAllocation.enabled", "true"):
        return None, None
    executors, cores = (settings.get(f"spark.executor.{what}") for what in ("instances", "cores"))
    return (int(executors), int(cores)) if executors and cores else (None, None)


def _contradictions(user: Mapping[str, str]) -> Iterator[str]:
    for key, (wanted, why) in ENFORCED.items():
        if key in user and not _is(user, key, wanted):
            yield f"{key}={user[key]}: must be {wanted}: {why}"
    local = _LOCAL.fullmatch(user.get("spark.master", ""))
    if local and local.group(2) not in {None, "1"}:
        wanted, why = ENFORCED["spark.task.maxFailures"]
        yield f"spark.master={user['spark.master']}: must allow {wanted} failure: {why}"


def _shortage(settings: Mapping[str, str], tasks_count: int) -> Iterator[str]:
    slots = slots_count(settings)
    if slots is not None and slots < tasks_count:
        yield (
            f"spark.master={settings['spark.master']} has {slots} slot{'' if slots == 1 else 's'}, "
            f"tasks.max={tasks_count} needs {tasks_count}: "
            "a task without a slot waits indefinitely"
        )


def _cores_count() -> int:
    return os.cpu_count() or 1


def _is(settings: Mapping[str, str], key: str, value: str) -> bool:
    return settings.get(key, "").strip().lower() in {value, f"{value}s"}
