"""
Complete configurations of the Kafka clients of a flow.

Three layers, weakest first: tuned defaults, the user's configuration, what exactly once needs.
They contain secrets. Their repr hides the secrets; JSON and pickle do not.
"""

from collections.abc import Mapping
from datetime import timedelta

from eos_mirror.core.boundary import FILLED_FOR_S, Boundary
from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.connect_offsets import AS_JAVA, SOURCE_CONNECTOR, offsets_topic
from eos_mirror.core.flow import Flow
from eos_mirror.core.messages import (
    CheckpointClients,
    CheckpointConfig,
    MirrorClients,
    MirrorConfig,
    OffsetsTopic,
    SyncsTopic,
    TaskConfig,
)
from eos_mirror.core.run_identity import RunIdentity
from eos_mirror.core.topic_limits import SenderLimits
from eos_mirror.settings.connector import DataPath
from eos_mirror.settings.fingerprint import fingerprint
from eos_mirror.settings.heartbeats import HeartbeatSettings
from eos_mirror.settings.mask import Masked
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.plugins import listener_spec, policy_of
from eos_mirror.settings.values import BoundaryMode

HEARTBEATS_PER_SESSION = 3
LONGEST_HEARTBEAT = timedelta(milliseconds=500)
"""A rebalance waits for the next heartbeat of every member, and twice if partitions move.
Partitions that move have no owner between the two."""

POLL_INTERVAL = timedelta(seconds=60)
"""A task that does not poll for this long leaves the group. Its transaction is gone by then."""

COMMON = {
    "log_level": "0",  # its requests report what matters, and `driver/cluster_watch.py` an outage
    "enable.metrics.push": "false",
}
CONSUMER = {
    "fetch.queue.backoff.ms": "5",  # the default of 1000 costs two thirds of the throughput
    "queued.min.messages": "20000",
    "queued.max.messages.kbytes": "8192",  # per partition; default 65536; 4096 costs a tenth
    "topic.metadata.refresh.interval.ms": "30000",
}
PRODUCER = {
    "batch.size": "800000",  # less than one fetch of a partition, so every fetch fills a batch
    "batch.num.messages": "8000",
    "queue.buffering.max.messages": "2000000",  # a full queue would stall a big transaction
    "queue.buffering.max.kbytes": "2097151",
    "message.max.bytes": "268435456",  # checked before compression, so far above the topic limit
    "retry.backoff.ms": "5",  # every back-to-back transaction waits this long
    "retry.backoff.max.ms": "1000",
}
HEARTBEATS = {"message.timeout.ms": "10000", "linger.ms": "0"}
ANSWERED_WITHIN = timedelta(seconds=10)
"""A producer request without a response after this time is retried or given up. That is before the
records of a transaction must be acknowledged. librdkafka's default is 60 s."""

MEMBER = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",  # a silent reset would lose or repeat records
    "partition.assignment.strategy": "cooperative-sticky",
    "group.protocol": "classic",
    "enable.partition.eof": "true",
    "check.crcs": "true",
}
WRITER = {
    "enable.idempotence": "true",
    "acks": "all",
}
CREATES_NOTHING = {"allow.auto.create.topics": "false"}
"""For every client. librdkafka's admin clients are producers. By default a producer creates the
topics that it requests by name: a deleted topic would come back empty, and its copy be wrong."""

LINGER = timedelta(seconds=FILLED_FOR_S)
"""A commit sends the waiting records first, so this adds no delay. It equals the longest time that
a lagging task fills one transaction: librdkafka busy-polls for records that have exceeded their
linger time and cannot be sent yet."""

CLAIMS_PRODUCER = {"linger.ms": "0", "compression.type": "none"}
CLAIMS_CONSUMER = {
    "enable.auto.commit": "false",
    "isolation.level": "read_uncommitted",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": "50",
    "check.crcs": "true",
}

POLLS = "max.poll.interval.ms"
WITHIN_THE_TRANSACTION = frozenset({"message.timeout.ms", "socket.timeout.ms"})
"""librdkafka refuses a transactional producer if one of these exceeds its transaction timeout."""


def source_consumer(flow: FlowSettings, *, slot: int) -> Masked:
    """Configure the source consumer of a task slot, a static member of the source group."""
    session = flow.session_timeout
    timing = {
        "heartbeat.interval.ms": _ms(min(LONGEST_HEARTBEAT, session / HEARTBEATS_PER_SESSION)),
        POLLS: _ms(max(POLL_INTERVAL, session)),
    }
    forced = MEMBER | {
        "group.id": flow.flow.source_group,
        "group.instance.id": flow.flow.instance_id(slot),
        "session.timeout.ms": _ms(session),
    }
    if flow.is_source_connector:
        del forced["group.instance.id"]  # it joins no group
    said = dict(flow.clients.source_consumer)
    if POLLS in said:  # librdkafka refuses less than the session; Java does not
        said[POLLS] = max(said[POLLS], forced["session.timeout.ms"], key=_number)
    return _complete(flow.flow, f"source-consumer-{slot}", CONSUMER | timing, said, forced)


def target_producer(flow: FlowSettings) -> Masked:
    """Configure the transactional producer; the caller adds the `transactional.id`."""
    forced = WRITER | {"transaction.timeout.ms": _ms(flow.transaction_timeout)}
    if flow.is_source_connector:
        forced |= AS_JAVA  # other records name their partition, or are in topics with one
    said = dict(flow.clients.target_producer)
    for name in WITHIN_THE_TRANSACTION & said.keys():
        said[name] = min(said[name], forced["transaction.timeout.ms"], key=_number)
    lasts_ms = _number(said.get("message.timeout.ms", forced["transaction.timeout.ms"]))
    timing = {
        "socket.timeout.ms": _ms(min(ANSWERED_WITHIN, flow.transaction_timeout)),
        "linger.ms": _ms(min(LINGER, timedelta(milliseconds=lasts_ms) / 2)),
    }
    return _complete(flow.flow, "target-producer", PRODUCER | timing, said, forced)


def source_admin(flow: FlowSettings) -> Masked:
    """Configure admin clients and plain readers of the source: connection and security."""
    return _complete(flow.flow, "source-admin", {}, flow.clients.source_admin, {})


def target_admin(flow: FlowSettings) -> Masked:
    """Configure admin clients and plain readers of the target: connection and security."""
    return _complete(flow.flow, "target-admin", {}, flow.clients.target_admin, {})


def driver_member(flow: FlowSettings, run: RunIdentity) -> Masked:
    """Configure the member of a run in the group of the drivers; its client id names the run."""
    return _complete(flow.flow, run.encode(), {}, flow.clients.target_admin, {})


def heartbeat_admin(pair: HeartbeatSettings) -> Masked:
    """Configure the admin client that creates the heartbeats topic."""
    return _complete(pair.flow, "heartbeats-target-admin", {}, pair.client, {})


def heartbeat_producer(pair: HeartbeatSettings) -> Masked:
    """Configure the heartbeat producer. A late heartbeat is useless, so it expires soon."""
    forced = {"acks": "all"}
    return _complete(pair.flow, "heartbeats-target-producer", HEARTBEATS, pair.client, forced)


def deployment(flow: FlowSettings) -> str:
    """Return the text that source group members with this configuration have in their client id."""
    return f"{flow.flow.name}|{fingerprint(flow)}"


def mode_of(flow: FlowSettings) -> DeliveryMode:
    """Return the delivery mode that the configuration asks for."""
    if flow.exactly_once:
        return DeliveryMode.EXACTLY_ONCE
    return DeliveryMode.SOURCE if flow.is_source_connector else DeliveryMode.AT_LEAST_ONCE


def positions_of(flow: FlowSettings) -> OffsetsTopic:
    """Return where MirrorMaker 2 in dedicated mode has its positions for this flow."""
    source = flow.flow.source
    return OffsetsTopic(topic=offsets_topic(source), connector=SOURCE_CONNECTOR, cluster=source)


def claims_producer(flow: FlowSettings) -> dict[str, str]:
    """
    Configure the producer of claims: idempotent, not transactional, so a claim counts immediately.

    Its client id differs from that of the record producer. A quota on records must not delay a
    claim, and the broker's log shows which of the two wrote.
    """
    producer = _without_transaction(target_producer(flow))
    name = producer["client.id"].replace("|target-producer", "|target-internal-producer")
    return {**producer, **CLAIMS_PRODUCER, "client.id": name}


def claims_consumer(flow: FlowSettings) -> dict[str, str]:
    """Configure the consumer that reads claims as they are appended."""
    group = {"group.id": flow.flow.shadow_group}  # never joined; no further right to grant
    return {**target_admin(flow), **group, **CLAIMS_CONSUMER}


def task_config(
    flow: FlowSettings,
    *,
    slot: int,
    claims_topic_id: str,
    measured: bool = False,
) -> TaskConfig:
    """
    Build the configuration of one mirror task.

    Args:
        claims_topic_id: Topic id of the claims topic at this start.
        measured: The task reports the metrics of each partition.
    """
    consumer = dict(source_consumer(flow, slot=slot))
    consumer["client.id"] = consumer["client.id"].replace(flow.flow.name, deployment(flow))
    producer = target_producer(flow)
    return TaskConfig(
        mirror=_mirror_config(flow, claims_topic_id, measured=measured),
        clients=MirrorClients(
            source_consumer=consumer,
            source_admin=dict(source_admin(flow)),
            target_producer=dict(producer),
            plain_producer=_without_transaction(producer),
            target_admin=dict(target_admin(flow)),
            claims_producer=claims_producer(flow),
            claims_consumer=claims_consumer(flow),
        ),
        syncs=syncs_of(flow),
        own_lane=flow.connector.data_path is DataPath.AUTO,
    )


def _mirror_config(flow: FlowSettings, claims_topic_id: str, *, measured: bool) -> MirrorConfig:
    return MirrorConfig(
        flow=flow.flow,
        boundary=_boundary(flow),
        start_position=flow.start_position,
        claims_topic_id=claims_topic_id,
        exactly_once=flow.exactly_once,
        abort_on_send_failure=flow.refusals.abort_on_send_failure,
        quarantine=flow.quarantine,
        provenance=flow.filters.provenance,
        measured=measured,
        sender=sender_limits(flow),
        keepalive=flow.offsets_keepalive,
        transforms=flow.transforms.chain,
        handler=flow.transforms.handler,
        listener=listener_spec(flow),
        assigned=flow.is_source_connector,
        positions=positions_of(flow) if flow.is_source_connector else None,
    )


def checkpoint_config(flow: FlowSettings) -> CheckpointConfig:
    """Build the configuration of a flow's checkpoint task."""
    groups, internal = flow.groups, policy_of(flow).internal_topics
    refresh_s = groups.refresh_interval.total_seconds() if groups.refresh else None
    sync_s = groups.sync_interval.total_seconds() if groups.sync_offsets else None
    return CheckpointConfig(
        flow=flow.flow,
        topic=internal.checkpoints(flow.flow.source),
        syncs_topic=syncs_topic(flow),
        replication_factor=groups.replication_factor,
        refresh_s=refresh_s,
        emit_s=groups.emit_interval.total_seconds(),
        sync_s=sync_s,
        on_commit=groups.sync_offsets and groups.sync_on_commit,
        clients=CheckpointClients(
            source_admin=dict(source_admin(flow)),
            target_admin=dict(target_admin(flow)),
            claims_producer=claims_producer(flow),
        ),
    )


def syncs_topic(flow: FlowSettings) -> str | None:
    """Return the offset-syncs topic; None for exactly once, which has an exact offset map."""
    if flow.exactly_once:
        return None
    return policy_of(flow).internal_topics.offset_syncs(flow.flow.source)


def _complete(
    flow: Flow,
    role: str,
    defaults: Mapping[str, str],
    said: Mapping[str, str],
    forced: Mapping[str, str],
) -> Masked:
    prefix = f"{said['client.id']}|" if said.get("client.id") else ""
    name = {"client.id": f"{prefix}{flow.name}|{role}"}
    return Masked({**COMMON, **defaults, **said, **forced, **CREATES_NOTHING, **name})


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0  # librdkafka reports what is wrong


def _ms(duration: timedelta) -> str:
    return str(max(1, duration // timedelta(milliseconds=1)))


def syncs_of(flow: FlowSettings) -> SyncsTopic | None:
    """Return where a mirror task writes offset syncs; None if it writes none."""
    topic = syncs_topic(flow)
    if topic is None or not flow.groups.emit_syncs:
        return None
    return SyncsTopic(topic=topic, replication_factor=flow.groups.syncs_replication_factor)


def _without_transaction(producer: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in producer.items() if not key.startswith("transaction")}


def _boundary(flow: FlowSettings) -> Boundary:
    return Boundary(
        interval_s=flow.transaction_interval.total_seconds(),
        timeout_s=flow.transaction_timeout.total_seconds(),
        max_bytes=flow.transaction_bytes,
        max_records=flow.transaction_records,
        every_poll=flow.transaction_boundary is BoundaryMode.POLL,
    )


def sender_limits(flow: FlowSettings) -> SenderLimits:
    """Return the limits that decide if a record fits into a topic, and how many fill a batch."""
    producer = target_producer(flow)
    return SenderLimits(
        max_request_bytes=int(producer["message.max.bytes"]),
        compression=producer.get("compression.type", "none"),
        batch_bytes=int(producer["batch.size"]),
        batch_records=int(producer["batch.num.messages"]),
    )
