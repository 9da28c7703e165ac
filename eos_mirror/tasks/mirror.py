"""The entry of a mirror task: from its configuration to a running engine."""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from eos_mirror.core.messages import MirrorClients, Orders, SyncsTopic, TaskConfig, TaskReport
from eos_mirror.core.side import Side
from eos_mirror.errors import RestartTask, TopicDenied
from eos_mirror.kafka.authorization import COPY_TO, MIRROR_FROM, MIRROR_TO
from eos_mirror.kafka.aws_msk_iam import token_maker
from eos_mirror.kafka.claims import KafkaClaimsLog
from eos_mirror.kafka.connect_offsets import ConnectOffsets
from eos_mirror.kafka.lane import KafkaLane
from eos_mirror.kafka.ledger import KafkaLedger
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.offset_syncs import KafkaOffsetSyncs
from eos_mirror.kafka.target import KafkaTarget
from eos_mirror.kafka.topic_writer import BestEffortWriter
from eos_mirror.ports import ClaimsLog, TaskChannel
from eos_mirror.replication.adapters import Adapters
from eos_mirror.replication.at_least_once import AtLeastOnce
from eos_mirror.replication.config import Fencing
from eos_mirror.replication.exactly_once import ExactlyOnce
from eos_mirror.replication.mode import Mode
from eos_mirror.replication.suspension import Suspension
from eos_mirror.replication.task import MirrorTask
from eos_mirror.tasks.context import TypedContext
from eos_mirror.tasks.messages import decode

if TYPE_CHECKING:
    from eos_mirror.wire.lane import WireLane

PATIENCE = timedelta(seconds=10)
"""Time limit for requests of a running task. Then its process exits; the next has new clients."""

Reached = Callable[[str], None]
"""Called at named points of a transaction."""

_kept: list[object] = []
"""Clients of an ended task. Their destructors can block, so the process exits without them."""


def mirror(
    message: Mapping[str, Any],
    channel: TaskChannel,
    *,
    fencing: Fencing = Fencing.CLAIMS,
    reached: Reached = lambda _: None,
) -> None:
    """
    Mirror until the driver sends STOP; a `ports.TaskEntry`.

    Args:
        message: A `core.messages.TaskConfig` in its JSON form.
        fencing: Any other value than `CLAIMS` duplicates records; tests show that the checker
            detects it.
        reached: Called at named points of a transaction; tests stop tasks there.

    Raises:
        RestartTask: The process has to exit, and a new one may succeed.
        FatalError: The process has to exit; another one would not help.
    """
    config = decode(TaskConfig, message)
    context = TypedContext[Orders, TaskReport](channel, Orders)
    adapters, claims = _adapters(config, context, fencing=fencing)
    mode = (
        ExactlyOnce(
            config.mirror,
            adapters,
            context,
            claims=claims(),
            fencing=fencing,
            reached=reached,
        )
        if config.mirror.exactly_once
        else _at_least_once(config, adapters, context, reached=reached)
    )
    task = MirrorTask(config.mirror, adapters, context, mode=mode)
    _kept.append((adapters, task))
    try:
        task.run()
    except TopicDenied as exc:
        raise RestartTask(str(exc)) from exc  # the successor excludes this topic


def _adapters(
    config: TaskConfig, context: TypedContext[Orders, TaskReport], *, fencing: Fencing
) -> tuple[Adapters, Callable[[], ClaimsLog]]:
    """Return what a task works with, and what opens the claims log: it is for exactly once only."""
    flow, clients = config.mirror.flow, config.clients
    metadata = ClusterMetadata(
        clients.source_admin, side=Side.SOURCE, patience=PATIENCE, needed=MIRROR_FROM
    )
    metadata.connect()
    library = _library(config, context.slot)
    lane = _own_lane(config, context, library)
    target = KafkaTarget(
        flow,
        client_config=clients.target_admin,
        require_stable=fencing is not Fencing.NAIVE,
        patience=PATIENCE,
        needed=MIRROR_TO if config.mirror.exactly_once else COPY_TO,
    )
    if lane is not None:
        target.read_with(lane.open_facts())
    adapters = Adapters(
        lane=library if lane is None else lane,
        metadata=metadata,
        target=target,
        ledger=KafkaLedger(clients.claims_producer, flow.ledger_topic),
        now=time.monotonic,
        wall_ms=_wall_ms,
        suspension=Suspension(time.monotonic),
        identities=metadata if lane is None else lane,
    )
    return adapters, partial(_claims_log, config, target, lane)


def _library(config: TaskConfig, slot: int) -> KafkaLane:
    clients = config.clients
    return KafkaLane(
        config.mirror.flow,
        consumer_config=_consumer(config, slot),
        producer_config=clients.target_producer,
        plain_producer_config=clients.plain_producer,
        client_config=clients.target_admin,
        positions=_positions(config),
    )


def _own_lane(
    config: TaskConfig, context: TypedContext[Orders, TaskReport], library: KafkaLane
) -> "WireLane | None":
    """Return our own lane; None if the configuration excludes it, or needs what it does not do."""
    if not config.own_lane:
        return None
    from eos_mirror.wire.lane import WireLane  # noqa: PLC0415 (its codec takes 0.1 s to load)
    from eos_mirror.wire.options import unsupported  # noqa: PLC0415 (the same)

    clients = config.clients
    for side, client in (("source", clients.source_consumer), ("target", clients.target_producer)):
        reason = unsupported(client)
        if reason is not None:
            context.event("data-path.client", {"reason": f"{side}: {reason}"})
            return None
    return WireLane(
        config.mirror.flow,
        library,
        consumer_config=_consumer(config, context.slot),
        producer_config=clients.target_producer,
        plain_producer_config=clients.plain_producer,
        tokens=token_maker,
    )


def _consumer(config: TaskConfig, slot: int) -> dict[str, str]:
    """Return the configuration of the source consumer: a static member, or of no group."""
    client = dict(config.clients.source_consumer)
    if not config.mirror.assigned:
        client["group.instance.id"] = config.mirror.flow.instance_id(slot)
    return client


def _positions(config: TaskConfig) -> ConnectOffsets | None:
    topic = config.mirror.positions
    if topic is None or config.mirror.exactly_once:
        return None
    return ConnectOffsets(
        topic,
        client_config=config.clients.target_admin,
        producer_config=config.clients.claims_producer,
        group=config.mirror.flow.shadow_group,
    )


def _claims_log(config: TaskConfig, target: KafkaTarget, lane: "WireLane | None") -> ClaimsLog:
    topic, topic_id = config.mirror.flow.claims_topic, config.mirror.claims_topic_id
    if lane is not None:
        return lane.open_claims(topic, topic_id=topic_id)
    return KafkaClaimsLog(
        config.clients.claims_producer,
        config.clients.claims_consumer,
        topic,
        topic_id=topic_id,
        ids=target.topic_ids,
    )


def _at_least_once(
    config: TaskConfig,
    adapters: Adapters,
    context: TypedContext[Orders, TaskReport],
    *,
    reached: Reached,
) -> Mode:
    syncs = None if config.syncs is None else _offset_syncs(config.syncs, config.clients)
    return AtLeastOnce(
        config.mirror,
        adapters,
        context,
        offset_syncs=syncs,
        reached=reached,
    )


def _offset_syncs(syncs: SyncsTopic, clients: MirrorClients) -> KafkaOffsetSyncs:
    topic = BestEffortWriter(
        syncs.topic,
        clients.target_admin,
        clients.claims_producer,
        replication_factor=syncs.replication_factor,
    )
    metadata = ClusterMetadata(clients.target_admin, side=Side.TARGET, patience=PATIENCE)
    return KafkaOffsetSyncs(metadata, topic)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
