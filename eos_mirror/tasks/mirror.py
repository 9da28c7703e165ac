"""The entry of a mirror task: from plain configuration to a running engine."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from eos_mirror.core.boundary import Boundary
from eos_mirror.core.flow import Flow
from eos_mirror.core.topic_limits import SenderLimits
from eos_mirror.errors import RestartTask, TopicDenied
from eos_mirror.kafka.authorization import COPY_TO, MIRROR_FROM, MIRROR_TO
from eos_mirror.kafka.best_effort import BestEffortTopic
from eos_mirror.kafka.claims import KafkaClaimsLog
from eos_mirror.kafka.idempotent_producer import KafkaPlainProducer
from eos_mirror.kafka.ledger import KafkaLedger
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.offset_syncs import KafkaOffsetSyncs
from eos_mirror.kafka.source import KafkaSource
from eos_mirror.kafka.target import KafkaTarget
from eos_mirror.ports import TaskContext
from eos_mirror.replication.adapters import Adapters
from eos_mirror.replication.config import Fencing, TaskConfig
from eos_mirror.replication.task import MirrorTask

PATIENCE = timedelta(seconds=10)
"""For questions of a running task; after that its process ends, and the next has new clients."""


_kept: list[object] = []
"""Clients of a task that ended: their destructors can block, and the process ends without them."""


def mirror(config: Mapping[str, Any], context: TaskContext) -> None:
    """
    Mirror until told to stop; a `ports.TaskEntry`.

    Args:
        config: As `settings/clients.py` wrote it: `flow`, `boundary`, `start_position`,
            `claims_topic_id`, `keepalive_s`, `exactly_once`, `abort_on_send_failure`, `measured`,
            `sender`, `fencing`, `pause_at`, and `clients` with complete client configurations by
            role.
    """
    task_config = engine_config(config)
    clients = config["clients"]
    flow = task_config.flow
    metadata = ClusterMetadata(
        clients["source_admin"], source=True, patience=PATIENCE, needed=MIRROR_FROM
    )
    metadata.connect()
    target = KafkaTarget(
        flow,
        producer_config=clients["target_producer"],
        client_config=clients["target_admin"],
        require_stable=task_config.fencing is not Fencing.NAIVE,
        patience=PATIENCE,
        needed=MIRROR_TO if task_config.exactly_once else COPY_TO,
    )
    adapters = Adapters(
        open_source=lambda listener: KafkaSource(
            {**clients["source_consumer"], "group.instance.id": flow.instance_id(context.slot)},
            listener,
        ),
        metadata=metadata,
        target=target,
        claims=_claims_of(task_config, clients, target) if task_config.exactly_once else None,
        open_plain_producer=lambda: KafkaPlainProducer(clients["plain_producer"]),
        offset_syncs=_syncs_of(config),
        note=KafkaLedger(clients["claims_producer"], flow.ledger_topic).append,
    )
    task = MirrorTask(
        task_config,
        adapters,
        context,
        now=time.monotonic,
        wall_ms=_wall_ms,
        reached=_pauser(config.get("pause_at")),
    )
    _kept.append((adapters, task))
    _run(task)


def _run(task: MirrorTask) -> None:
    try:
        task.run()
    except TopicDenied as exc:
        raise RestartTask(str(exc)) from exc  # the successor leaves this topic out


def _claims_of(
    config: TaskConfig, clients: Mapping[str, Any], target: KafkaTarget
) -> KafkaClaimsLog:
    return KafkaClaimsLog(
        clients["claims_producer"],
        clients["claims_consumer"],
        config.flow.claims_topic,
        topic_id=config.claims_topic_id,
        ids=target.topic_ids,
    )


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _syncs_of(config: Mapping[str, Any]) -> KafkaOffsetSyncs | None:
    syncs, clients = config["syncs"], config["clients"]
    if syncs is None:
        return None
    topic = BestEffortTopic(
        syncs["topic"],
        clients["target_admin"],
        clients["claims_producer"],
        replication_factor=syncs["replication_factor"],
    )
    metadata = ClusterMetadata(clients["target_admin"], source=False, patience=PATIENCE)
    return KafkaOffsetSyncs(metadata, topic)


def engine_config(config: Mapping[str, Any]) -> TaskConfig:
    """What the engine needs of a task's configuration."""
    return TaskConfig(
        flow=Flow(*config["flow"]),
        boundary=Boundary(**config["boundary"]),
        start_position=config["start_position"],
        claims_topic_id=config["claims_topic_id"],
        keepalive=timedelta(seconds=config["keepalive_s"]),
        fencing=Fencing(config.get("fencing", Fencing.CLAIMS.value)),
        exactly_once=config["exactly_once"],
        abort_on_send_failure=config["abort_on_send_failure"],
        provenance=config["provenance"],
        measured=config["measured"],
        sender=SenderLimits(**config["sender"]),
    )


def _pauser(points: str | None) -> Callable[[str], None]:
    """
    Stop this process, as SIGSTOP does, when it reaches a named point.

    Args:
        points: `flushed:3`: the third time. `flushed@PATH`: whenever there is a file PATH, which
            is removed; of several tasks one wins it. Several of the second form with commas.
    """
    if points is None:
        return lambda _: None
    if "@" in points:
        return _flag_pauser(dict(point.split("@", 1) for point in points.split(",")))
    name, _, count = points.partition(":")
    left = int(count or 1)

    def reached(where: str) -> None:
        nonlocal left
        if where == name:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGSTOP)

    return reached


def _flag_pauser(flags: Mapping[str, str]) -> Callable[[str], None]:
    """The form with files, by point."""

    def reached(where: str) -> None:
        if where in flags:
            with suppress(FileNotFoundError):
                os.unlink(flags[where])
                os.kill(os.getpid(), signal.SIGSTOP)

    return reached
