"""
Tasks as Spark jobs: `runtime = spark`. Only this module imports pyspark, and only on use.

One job per submission, with one partition and so one Python worker. Spark gives placement,
isolation and the cluster. It does not give uniqueness: a cancelled job's worker lives for another
2 to 4 s, and the next one may start before that.
"""

import logging
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from eos_mirror.errors import MirrorError
from eos_mirror.runtime.java import find_java_home
from eos_mirror.runtime.launcher import Running
from eos_mirror.runtime.lifeline import last_words
from eos_mirror.runtime.outcome import Ending, ExitCode, Outcome
from eos_mirror.runtime.spark_settings import spark_settings
from eos_mirror.runtime.spec import TaskSpec
from eos_mirror.runtime.worker import run_in_worker

if TYPE_CHECKING:
    from pyspark import SparkContext

JVM_POLL = timedelta(milliseconds=200)

LOSS_POLL_S = 1.0
"""How often Spark is asked if it has lost a task. An answer takes some 2 ms."""

FAILURE_FOLLOWS_S = 0.5
"""A job whose only task failed by itself ends within this time, and says why."""

APP = "eos-mirror"
"""Name of the application of a run, as the cluster shows it."""

LOST = "Spark job: the executor of its task is lost"


class SparkRunning:
    """
    A Spark job with one task.

    If Spark loses the executor and does not blame the task, it does not fail the job: it repeats
    the task when a slot is free. The repeated task has the same submission, so it would get no
    lease. The job is cancelled instead.
    """

    def __init__(self, context: "SparkContext", spec: TaskSpec, *, name: str) -> None:
        self._context = context
        self._tag = f"eos-mirror {name} {spec.submission}"
        self._group = f"{self._tag} {uuid.uuid4().hex}"  # of this job alone, so that it is found
        self._ended = threading.Event()
        self._ending = Ending(Outcome.RESTART)
        self._stages: list[int] = []  # of the job, once Spark knows it
        self._asks_at_s = time.monotonic() + LOSS_POLL_S
        # no InheritableThread: it asks the JVM outside `_run`, and the job needs nothing inherited
        self._thread = threading.Thread(
            target=self._run, args=(f"{name} task {spec.submission}", spec.to_json()), daemon=True
        )
        self._thread.start()

    def wait(self, within: timedelta) -> Ending | None:
        """Return STOPPED if the job succeeded; otherwise Spark's text for the failure, or LOST."""
        if self._ended.wait(within.total_seconds()):
            return self._ending
        if time.monotonic() < self._asks_at_s or not self._has_lost_its_task():
            return None
        if self._ended.wait(FAILURE_FOLLOWS_S):
            return self._ending
        self.kill()
        return Ending(Outcome.RESTART, LOST)

    def kill(self) -> None:
        """Cancel the job. Its worker gets no signal first, only SIGKILL 2 to 4 s later."""
        with _unless_jvm_is_gone():
            self._context.cancelJobsWithTag(self._tag)

    def _has_lost_its_task(self) -> bool:
        """Return True if Spark counts a failure of the task, although the job has not ended."""
        self._asks_at_s = time.monotonic() + LOSS_POLL_S
        with _unless_jvm_is_gone():
            tracker = self._context.statusTracker()
            if not self._stages:
                jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(self._group))
                self._stages = [stage for job in jobs if job for stage in job.stageIds]
            stages = map(tracker.getStageInfo, self._stages)
            return any(stage.numFailedTasks for stage in stages if stage)
        return False

    def _run(self, description: str, spec_text: str) -> None:
        try:
            self._context.addJobTag(self._tag)
            self._context.setJobGroup(self._group, description)
            data = self._context.parallelize([None], 1)
            data.mapPartitions(partial(run_in_worker, spec_text)).collect()
            self._ending = Ending(Outcome.STOPPED)
        except Exception as exc:  # noqa: BLE001 - top of a thread: it ends the submission
            self._ending = Ending(Outcome.RESTART, describe_failure(exc))
        finally:
            self._ended.set()


def _unless_jvm_is_gone() -> suppress:
    """End a block quietly when the JVM is gone: the driver exits then (`SparkRuntime`)."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - local mode works without pyspark

    return suppress(Py4JError, OSError)


class SparkLauncher:
    """Submits tasks to a running Spark application."""

    def __init__(self, context: "SparkContext", *, name: str) -> None:
        """
        Args:
            name: Name of the flow; it is part of tags and descriptions, so it has no comma.
        """
        self._context = context
        self._name = name

    def launch(self, spec: TaskSpec) -> Running:
        """Submit one job."""
        return SparkRunning(self._context, spec, name=self._name)


class SparkRuntime:
    """
    One Spark application: the JVM, its context, and a thread that detects the JVM's death.

    Invariant A: the driver does not outlive its JVM. Python would not notice, and a driver
    without tasks would continue to write heartbeats and checkpoints.
    """

    def __init__(self, context: "SparkContext", *, on_jvm_death: Callable[[], None]) -> None:
        self.context = context
        self._on_jvm_death = on_jvm_death
        self._stopping = threading.Event()
        self._parent_pid = os.getppid()
        self._thread = threading.Thread(target=self._watch, name="jvm-watch", daemon=True)
        self._thread.start()

    @classmethod
    def start(
        cls,
        settings: Mapping[str, str],
        *,
        app: str,
        tasks_count: int,
        on_jvm_death: Callable[[], None] | None = None,
    ) -> Self:
        """
        Start Spark. Takes 3 to 8 s.

        Args:
            settings: The user's `spark.*`.
            app: Shown in the UI of the cluster.
            tasks_count: Number of jobs that run at the same time.
            on_jvm_death: Called when the JVM is gone; the default exits with ORPHAN (70).

        Raises:
            MirrorError: Spark did not start.
            ConfigError: No Java, a setting that breaks endless tasks, or too few slots.
        """
        context = start_context(spark_settings(settings, tasks_count=tasks_count), app=app)
        return cls(context, on_jvm_death=on_jvm_death or _end_process)

    def launcher(self, name: str) -> SparkLauncher:
        """Return a launcher for the tasks of one flow."""
        return SparkLauncher(self.context, name=name)

    def stop(self) -> None:
        """Stop the application. Stop the tasks and join their supervisors first."""
        self._stopping.set()
        self._thread.join()
        self.context.stop()

    def _watch(self) -> None:
        while not self._stopping.wait(JVM_POLL.total_seconds()):
            if not self._jvm_lives():
                self._on_jvm_death()
                return

    def _jvm_lives(self) -> bool:
        process: Any = getattr(type(self.context)._gateway, "proc", None)  # noqa: SLF001 - the only handle there is
        if process is None:  # spark-submit: the JVM started us
            return os.getppid() == self._parent_pid
        return bool(process.poll() is None)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """
    Return False for what py4j logs when the JVM dies while it waits for an answer.

    It logs to the root logger, which prints a traceback on stderr. It raises the error, too.
    """
    return record.module != "java_gateway"


def start_context(settings: Mapping[str, str], *, app: str) -> "SparkContext":
    """
    Start a Spark application. Takes 3 to 8 s.

    Args:
        settings: Complete `spark.*`.
        app: Shown in the UI of the cluster.

    Raises:
        MirrorError: Spark did not start.
        ConfigError: No Java.
    """
    os.environ["JAVA_HOME"] = str(find_java_home())
    logging.getLogger().addFilter(_is_not_of_py4j)
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - after JAVA_HOME is known
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    on_interrupt = signal.getsignal(signal.SIGINT)
    conf = SparkConf().setAppName(app).setAll(list(settings.items()))
    try:
        # a signal to the process group of the driver must not end the JVM before the tasks; it
        # exits when its pipe from the driver breaks
        is_first = SparkContext._gateway is None  # noqa: SLF001 - a process has one JVM
        launch: Any = launch_gateway  # it has no types
        gateway = launch(conf, {"start_new_session": True}) if is_first else None
        context = SparkContext(conf=conf, gateway=gateway)
    except Exception as exc:
        # classes of Py4J and Spark; a dead JVM also raises one
        first = next(iter(str(exc).strip().splitlines()), "")
        raise MirrorError(f"Spark did not start: {type(exc).__name__}: {first}") from exc
    context.pythonExec = settings["spark.pyspark.python"]  # Spark reads PYSPARK_PYTHON only
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, on_interrupt)  # Spark's handler would cancel every job
    return context


def check_spark(settings: Mapping[str, str], *, tasks_count: int) -> None:
    """
    Check what `SparkRuntime.start` would refuse, without starting anything.

    Raises:
        ConfigError: No Java, a setting that breaks endless tasks, or too few slots.
    """
    spark_settings(settings, tasks_count=tasks_count)
    find_java_home()


def describe_failure(exc: Exception) -> str:
    """Return the cause in one line; py4j needs a hundred."""
    java_exception = getattr(exc, "java_exception", None)
    message = str(exc) if java_exception is None else str(java_exception.getMessage())
    _, _, cause = message.rpartition("most recent failure: ")
    first_line = cause.strip().split("\n", 1)[0]
    return f"Spark job: {first_line}"


def _end_process() -> None:
    last_words("driver: the Spark JVM is gone; the process exits")
    os._exit(ExitCode.ORPHAN)
