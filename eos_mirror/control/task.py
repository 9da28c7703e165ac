"""The entry of a mirror task: from plain configuration to a running engine."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from eos_mirror.core.boundary import Boundary
from eos_mirror.core.flow import Flow
from eos_mirror.kafka.claims import KafkaClaimsLog
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.source import KafkaSource
from eos_mirror.kafka.target import KafkaTarget
from eos_mirror.ports import TaskContext
from eos_mirror.replication.config import Fencing, TaskConfig
from eos_mirror.replication.task import MirrorTask, World


def mirror(config: Mapping[str, Any], context: TaskContext) -> None:
    """
    Mirror until told to stop; a `ports.TaskEntry`.

    Args:
        config: As `control/task_config.py` wrote it: `flow`, `boundary`, `start_position`,
            `claims_topic_id`, `keepalive_s`, `fencing`, `pause_at`, and `clients` with complete
            client configurations by role.
    """
    task_config = TaskConfig(
        flow=Flow(*config["flow"]),
        boundary=Boundary(**config["boundary"]),
        start_position=config["start_position"],
        claims_topic_id=config["claims_topic_id"],
        keepalive=timedelta(seconds=config["keepalive_s"]),
        fencing=Fencing(config.get("fencing", Fencing.CLAIMS.value)),
    )
    clients = config["clients"]
    flow = task_config.flow
    metadata = ClusterMetadata(clients["source_admin"], source=True)
    metadata.connect()
    world = World(
        open_source=lambda listener: KafkaSource(
            {**clients["source_consumer"], "group.instance.id": flow.instance_id(context.slot)},
            listener,
        ),
        metadata=metadata,
        target=KafkaTarget(
            flow,
            producer_config=clients["target_producer"],
            client_config=clients["target_admin"],
            require_stable=task_config.fencing is not Fencing.NAIVE,
        ),
        claims=KafkaClaimsLog(
            clients["claims_producer"], clients["claims_consumer"], flow.claims_topic
        ),
    )
    MirrorTask(
        task_config, world, context, now=time.monotonic, reached=_pauser(config.get("pause_at"))
    ).run()


def _pauser(point: str | None) -> Callable[[str], None]:
    """Stop this process, as SIGSTOP does, the n-th time it reaches a point: `flushed:3`."""
    if point is None:
        return lambda _: None
    name, _, count = point.partition(":")
    left = int(count or 1)

    def reached(where: str) -> None:
        nonlocal left
        if where == name:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGSTOP)

    return reached
