"""What a task is told: from settings to the plain configuration of `control/task.py`."""

from collections.abc import Mapping
from typing import Any

from eos_mirror.settings import clients
from eos_mirror.settings.fingerprint import fingerprint
from eos_mirror.settings.model import FlowSettings
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


def task_config(flow: FlowSettings, *, slot: int, claims_topic_id: str) -> dict[str, Any]:
    """
    JSON-able, secrets included.

    Args:
        claims_topic_id: Identity of the claims topic as of this start.
    """
    consumer = dict(clients.source_consumer(flow, slot=slot))
    consumer["client.id"] = consumer["client.id"].replace(flow.flow.name, deployment(flow))
    target = clients.target_admin(flow)
    producer = clients.target_producer(flow)
    return {
        "flow": [flow.flow.source, flow.flow.target],
        "boundary": {
            "interval_s": flow.transaction_interval.total_seconds(),
            "max_bytes": flow.transaction_bytes,
            "max_records": flow.transaction_records,
            "every_poll": flow.transaction_boundary is BoundaryMode.POLL,
        },
        "start_position": flow.start_position,
        "claims_topic_id": claims_topic_id,
        "keepalive_s": flow.offsets_keepalive.total_seconds(),
        "clients": {
            "source_consumer": consumer,
            "source_admin": dict(clients.source_admin(flow)),
            "target_producer": dict(producer),
            "target_admin": dict(target),
            "claims_producer": {**_without_transaction(producer), **CLAIMS_PRODUCER},
            "claims_consumer": {
                **target,
                "group.id": flow.flow.shadow_group,  # never joined; no further right to grant
                **CLAIMS_CONSUMER,
            },
        },
    }


def _without_transaction(producer: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in producer.items() if not key.startswith("transaction")}
