"""
The steps of the demo: fill the source, mirror, kill -9 a task in an open transaction, wait, prove.
"""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from eos_mirror.demo.crash import (
    PAUSE_POINT,
    START,
    TASK,
    crash_in_transaction,
    transaction_states,
)
from eos_mirror.demo.mirror_run import FLOW, Lag, MirrorRun, write_config
from eos_mirror.demo.outcome import Outcome
from eos_mirror.demo.proof import Proof, prove
from eos_mirror.demo.source import (
    PARTITIONS,
    TOPIC,
    OrderWriter,
    Written,
    acknowledged,
    fill,
    keep_writing,
    verifiable_producer,
)
from eos_mirror.demo.story import Story
from eos_mirror.runtime.java import find_java_home
from eos_mirror.testing.cluster import KafkaCluster, start_clusters
from eos_mirror.testing.java import find_java
from eos_mirror.testing.waiting import wait_until

RECORDS = 200_000
"""Written by Kafka's own VerifiableProducer."""
ORDERS_SHARE = 8
"""There is one order for this many records. Orders have every shape and come in transactions."""
REMOTE = f"{FLOW.source}.{TOPIC}"
CATCH_UP = timedelta(seconds=120)
STOP = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The clusters, the folder and the output of one demo."""

    source: KafkaCluster
    target: KafkaCluster
    folder: Path
    story: Story


def play(folder: Path, story: Story, *, runtime: str, records_count: int) -> Outcome:
    """
    Run every step, and stop everything that was started.

    Args:
        folder: For the configuration, the events and the console consumers' output.
        runtime: `spark` or `local`.
        records_count: Records that Kafka's VerifiableProducer writes; orders are additional.

    Raises:
        MirrorError, TimeoutError: No suitable Java was found, or a step failed.
    """
    find_java()
    if runtime == "spark":
        find_java_home()  # a Java that serves brokers may not serve Spark
    with ExitStack() as cleanup:
        source, target = (KafkaCluster(name=name) for name in ("A", "B"))
        stage = Stage(source=source, target=target, folder=folder, story=story)
        cleanup.callback(source.stop)
        cleanup.callback(target.stop)
        _start_brokers(stage)
        written = _fill(stage, records_count)
        mirror = _start(stage, runtime)
        cleanup.callback(mirror.close)
        with story.during("two tasks are starting; then more orders come in, a few at a time"):
            mirror.wait_for("task.started", within=START, task=TASK)
        started_s = story.elapsed_s
        live = OrderWriter(stage.source.bootstrap, name="live")
        with _writing(live):
            killed = crash_in_transaction(stage.target, mirror, story)
        written += live.written
        _catch_up(stage, mirror)
        mirrored_s = story.elapsed_s - started_s
        exit_code = _stop(stage, mirror, killed)
        return Outcome(
            written=written,
            proof=_prove(stage, written),
            transactions=mirror.total("transactions"),
            killed=len(killed),
            fenced=len({e["transactional_id"] for e in mirror.found("incarnation.fenced")}),
            slow_commits=len(mirror.found("commit.suspicious")),
            best_rate=mirror.best_rate(),
            mirrored_s=mirrored_s,
            exit_code=exit_code,
        )


def _start_brokers(stage: Stage) -> None:
    with stage.story.during(
        "starting two Kafka clusters: A, the source, and B, the target",
        lambda: "longer the first time, when Kafka's jars are fetched and prepared",
    ):
        start_clusters(stage.source, stage.target)


def _fill(stage: Stage, records_count: int) -> Written:
    stage.source.create_topic(TOPIC, PARTITIONS)
    orders_count = records_count // ORDERS_SHARE
    writer = OrderWriter(stage.source.bootstrap, name="stock")

    def progress() -> str:
        return f"{writer.written.committed.total():,} committed, {writer.written.aborted:,} aborted"

    with (
        stage.story.during(
            f"writing {records_count + orders_count:,} records to {TOPIC} on A, "
            f"{PARTITIONS} partitions",
            progress,
        ),
        ThreadPoolExecutor(1) as pool,
    ):
        java = pool.submit(
            stage.source.tool, "VerifiableProducer", *verifiable_producer(records_count)
        )
        fill(writer, orders_count)
        report = java.result()
    by_java_written = acknowledged(report.stdout)
    stage.story.tell(
        f"{by_java_written.committed.total():,} by Kafka's VerifiableProducer, "
        f"{writer.written.committed.total():,} in {writer.written.commits} transactions; "
        f"{writer.written.aborts} more transactions, with {writer.written.aborted:,} records, "
        "were aborted"
    )
    return writer.written + by_java_written


@contextmanager
def _writing(writer: OrderWriter) -> Iterator[None]:
    """Keep writing orders on a separate thread while the block runs."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(keep_writing, writer, stop)
        try:
            yield
        finally:
            stop.set()
    writing.result()


def _start(stage: Stage, runtime: str) -> MirrorRun:
    config = stage.folder / "mm2.properties"
    write_config(
        config,
        source=stage.source.bootstrap,
        target=stage.target.bootstrap,
        topic=TOPIC,
        runtime=runtime,
    )
    where = "on Spark, local[2]" if runtime == "spark" else "with child processes"
    stage.story.tell(f"eos-mirror run {config}  ({where})")
    return MirrorRun(config, pause_at=PAUSE_POINT)


def _catch_up(stage: Stage, mirror: MirrorRun) -> None:
    lag = Lag(stage.source.client_config(), stage.target.client_config(), topic=TOPIC)
    left = 0

    def caught_up() -> bool:
        nonlocal left
        left = lag.offsets_left()
        return left == 0 or mirror.has_ended

    with stage.story.during(
        "waiting until B has everything that is on A",
        lambda: f"{left:,} offsets to go" if left else "asking both clusters",
    ):
        wait_until(caught_up, within=CATCH_UP, what="the shadow offsets at the ends of A")
    if left:
        raise mirror.ended_early()


def _stop(stage: Stage, mirror: MirrorRun, killed: Sequence[str]) -> int:
    """Show the state of the killed transactions, stop the run and return its exit code."""
    states = transaction_states(stage.target.tool("TransactionsCommand", "list").stdout)
    stage.story.tell(
        "caught up",
        *(f"{name}  {states.get(name, 'gone')}: what it had sent is aborted" for name in killed),
    )
    with stage.story.during("SIGTERM to eos-mirror run"):
        exit_code = mirror.stop(within=STOP)
    stage.story.tell(f"it finished, released its claims, and exited with code {exit_code}")
    return exit_code


def _prove(stage: Stage, written: Written) -> Proof:
    with stage.story.during(
        "reading both sides with Kafka's console consumer, read_committed",
        lambda: f"it prints {written.committed.total():,} records on each side",
    ):
        return prove(
            (stage.source, TOPIC),
            (stage.target, REMOTE),
            written=written.committed,
            folder=stage.folder,
        )
