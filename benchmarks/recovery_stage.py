"""Starts a flow for a kind of fault, causes the fault, and measures the recovery."""

import json
import random
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import monotonic

from benchmarks.mirror import Mirror, write_config
from benchmarks.recovery_faults import Kind
from benchmarks.recovery_flow import STARTED, TASKS, Deadline, Stage
from benchmarks.recovery_witness import ALL, FLOW, PARTITIONS, TOPIC, Witness, load
from eos_mirror.errors import MirrorError
from eos_mirror.testing import KafkaCluster, start_clusters
from eos_mirror.testing.spark_cluster import LOOPBACK, spark_cluster

RECOVERED_WITHIN = timedelta(seconds=60)
LONGEST_PAUSE_S = 1.0


class NotRecoveredError(Exception):
    """The flow did not recover in time; the message names the fault and the last events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """
    What one fault cost, in seconds.

    Attributes:
        silence_s: Longest time without a newly visible record on the worst affected partition.
        others_s: The same on the partitions of tasks that were not hit; None if there are none.
        affected: Partitions that were hit.
        elected_s: From the fault until all partitions and coordinators had another leader: the
            brokers' own part of it; None if no broker was hit.
        after_s: From then until every partition had got a record.
    """

    silence_s: float
    others_s: float | None
    affected: tuple[int, ...]
    elected_s: float | None = None
    after_s: float | None = None


@contextmanager
def open_stage(kind: Kind, *, runtime: str, data_path: str, dice: random.Random) -> Iterator[Stage]:
    """Start a healthy flow under load; everything is stopped at the end of the block."""
    source = KafkaCluster(name="source")
    target = KafkaCluster(
        kind.brokers,
        name="target",
        controllers="separate" if kind.brokers > 1 else "combined",
        broker_config=kind.broker_settings,
    )
    with ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory()))
        cleanup.callback(source.stop)
        cleanup.callback(target.stop)
        start_clusters(source, target)
        source.create_topic(TOPIC, PARTITIONS)
        settings: dict[str, object] = {
            "runtime": runtime,
            "data.path": data_path,
            "tasks.max": TASKS,
            "replication.factor": kind.brokers,
            "internal.topic.replication.factor": kind.brokers,
            **kind.settings,
        }
        if kind.standalone:
            settings |= _standalone(cleanup.enter_context(spark_cluster(folder, cores=TASKS)))
        elif runtime == "spark":
            settings["spark.master"] = f"local[{TASKS}]"
        config = write_config(
            folder, FLOW, source=source, target=target, topic=TOPIC, settings=settings
        )
        mirror = Mirror(config)
        stage = Stage(
            source=source,
            target=target,
            config=config,
            dice=dice,
            mirror=mirror,
            witness=_witness(mirror, target, cleanup),
        )
        cleanup.callback(stage.close)
        cleanup.enter_context(load(source))
        stage.wait_healthy(Deadline(STARTED))
        yield stage


def _witness(mirror: Mirror, target: KafkaCluster, cleanup: ExitStack) -> Witness:
    """Create the witness once the remote topic exists."""
    try:
        mirror.wait_for("ready", within_s=STARTED.total_seconds())
    except BaseException:
        mirror.process.kill()
        mirror.process.wait()
        raise
    witness = Witness(target)
    cleanup.callback(witness.close)
    return witness


def _standalone(address: str) -> Mapping[str, object]:
    """Return the settings that give every task its own executor."""
    return {
        "spark.master": address,
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.executor.cores": 1,
        "spark.executor.memory": "512m",
        "spark.cores.max": TASKS,
    }


def measure(stage: Stage, kind: Kind) -> Recovery:
    """
    Cause the fault once, and wait until the flow is healthy again.

    Raises:
        NotRecoveredError: It was not healthy in time.
    """
    began = monotonic()
    try:
        stage.wait_settled()
        threading.Event().wait(stage.dice.uniform(0, LONGEST_PAUSE_S))
        stage.wait_healthy(Deadline(RECOVERED_WITHIN))  # it may have rebalanced since
        began, deadline = monotonic(), Deadline(RECOVERED_WITHIN)
        hit = kind.act(stage, deadline)
        stage.wait_healthy(deadline, without=hit.victims)
    except (TimeoutError, RuntimeError, MirrorError) as exc:
        lines = [f"{e.at - began:+9.3f} {json.dumps(e.fields)}" for e in stage.last_events()]
        raise NotRecoveredError(
            "\n".join([f"{kind.name}: {exc}; the last events, seconds from the fault:", *lines])
        ) from exc
    until = monotonic()
    worst = stage.witness.longest_silence(hit.affected, since=hit.at, until=until)
    others = stage.witness.longest_silence(ALL - hit.affected, since=hit.at, until=until)
    assert worst is not None, "the fault hit no partition"
    return Recovery(
        silence_s=worst.ended - hit.at if kind.from_start else worst.length_s,
        others_s=others.length_s if others else None,
        affected=tuple(sorted(hit.affected)),
        elected_s=None if hit.elected_at is None else hit.elected_at - hit.at,
        after_s=_after(stage, hit.elected_at),
    )


def _after(stage: Stage, elected_at: float | None) -> float | None:
    if elected_at is None:
        return None
    return stage.witness.first_since(elected_at) - elected_at
