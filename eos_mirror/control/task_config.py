"""What a task is told: from settings to the plain configuration of `control/task.py`."""

from collections.abc import Mapping
from typing import Any

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.settings import clients
from eos_mirror.settings.fingerprint import fingerprint
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.plugins import policy_of
from eos_mirror.settings.values import BoundaryMode

CLAIMS_PRODUCER = {"linger.ms": "0", "compression.type": "none"}
CLAIMS_CONSUMER = {
    "enable.auto.commit": "false",
    "isolation.level": "read_uncommitted",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": "50",
    "check.crcs": "true",
}


def deployment(flow: FlowSettings) -> str:
    """What every member of the source group with this configuration has in its client id."""
    return f"{flow.flow.name}|{fingerprint(flow)}"


def mode_of(flow: FlowSettings) -> DeliveryMode:
    """What the file asks for."""
    return DeliveryMode.EXACTLY_ONCE if flow.exactly_once else DeliveryMode.AT_LEAST_ONCE


def claims_producer(flow: FlowSettings) -> dict[str, str]:
    """
    Idempotent, not transactional: a claim counts at once.

    Its client id is not that of the records: a quota on those must not delay a claim, and the
    broker's log tells the two apart.
    """
    producer = _without_transaction(clients.target_producer(flow))
    name = producer["client.id"].replace("|target-producer", "|target-internal-producer")
    return {**producer, **CLAIMS_PRODUCER, "client.id": name}


def claims_consumer(flow: FlowSettings) -> dict[str, str]:
    """Reads the claims as they are appended."""
    group = {"group.id": flow.flow.shadow_group}  # never joined; no further right to grant
    return {**clients.target_admin(flow), **group, **CLAIMS_CONSUMER}


def task_config(
    flow: FlowSettings,
    *,
    slot: int,
    claims_topic_id: str,
    measured: bool = False,
) -> dict[str, Any]:
    """
    JSON-able, secrets included.

    Args:
        claims_topic_id: Identity of the claims topic as of this start.
        measured: The task tells what each partition does.
    """
    consumer = dict(clients.source_consumer(flow, slot=slot))
    consumer["client.id"] = consumer["client.id"].replace(flow.flow.name, deployment(flow))
    target = clients.target_admin(flow)
    producer = clients.target_producer(flow)
    return {
        "flow": [flow.flow.source, flow.flow.target],
        "boundary": {
            "interval_s": flow.transaction_interval.total_seconds(),
            "timeout_s": flow.transaction_timeout.total_seconds(),
            "max_bytes": flow.transaction_bytes,
            "max_records": flow.transaction_records,
            "every_poll": flow.transaction_boundary is BoundaryMode.POLL,
        },
        "start_position": flow.start_position,
        "claims_topic_id": claims_topic_id,
        "exactly_once": flow.exactly_once,
        "abort_on_send_failure": flow.abort_on_send_failure,
        "provenance": flow.filters.provenance,
        "measured": measured,
        "sender": _sender(producer),
        "syncs": _syncs(flow),
        "keepalive_s": flow.offsets_keepalive.total_seconds(),
        "clients": {
            "source_consumer": consumer,
            "source_admin": dict(clients.source_admin(flow)),
            "target_producer": dict(producer),
            "plain_producer": _without_transaction(producer),
            "target_admin": dict(target),
            "claims_producer": claims_producer(flow),
            "claims_consumer": claims_consumer(flow),
        },
    }


def _syncs(flow: FlowSettings) -> dict[str, Any] | None:
    """Where offset syncs go; None without any."""
    if flow.exactly_once or not flow.groups.emit_syncs:
        return None
    return {
        "topic": policy_of(flow).internal_topics.offset_syncs(flow.flow.source),
        "replication_factor": flow.groups.syncs_replication_factor,
    }


def _without_transaction(producer: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in producer.items() if not key.startswith("transaction")}


def _sender(producer: Mapping[str, str]) -> dict[str, Any]:
    """What decides whether a record, and how many in a batch, fit into a topic."""
    return {
        "max_request_bytes": int(producer["message.max.bytes"]),
        "compression": producer.get("compression.type", "none"),
        "batch_bytes": int(producer["batch.size"]),
        "batch_records": int(producer["batch.num.messages"]),
    }
