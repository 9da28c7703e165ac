"""
Connectors of MirrorMaker 2, as Kafka Connect stores them.

The topic is `mm2-configs.A.internal` on the target, or the `config.storage.topic` of a Connect
cluster. Its values are JSON, and the newest record of a key counts.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

CHECKPOINT_CONNECTOR = "MirrorCheckpointConnector"
"""Name of the connector in dedicated mode. On a Connect cluster, a user chose the name."""

STOPPED = "STOPPED"
"""A state that has no tasks. Connect before 3.5 does not know it, and reads the older field."""


class ConnectRecord(NamedTuple):
    """A record of the config topic."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorFacts:
    """
    What the config topic says of one connector.

    Attributes:
        exists: It is configured. No worker runs a connector that is not.
        is_stopped: It has no tasks, and gets none when its workers are started again.
        tasks_ever: Largest number of tasks that had a transactional id; 0 without exactly once.
    """

    exists: bool = False
    is_stopped: bool = False
    tasks_ever: int = 0


def connector_facts(
    records: Iterable[tuple[str | None, bytes | None]], connector: str
) -> ConnectorFacts:
    """Return what the records say; one that cannot be read counts as empty."""
    config, state, tasks_ever = None, None, 0
    for key, value in records:
        if key == f"connector-{connector}":
            config = value
        elif key == f"target-state-{connector}":
            state = _fields(value).get("state.v2")
        elif key == f"tasks-fencing-{connector}":
            tasks = _fields(value).get("task-count")
            tasks_ever = max(tasks_ever, tasks if isinstance(tasks, int) else 0)
    return ConnectorFacts(
        exists=config is not None, is_stopped=state == STOPPED, tasks_ever=tasks_ever
    )


def records_that_stop(connector: str) -> list[ConnectRecord]:
    """Return what a worker writes when it is asked to stop a connector, in its order."""
    return [
        ConnectRecord(f"commit-{connector}", json.dumps({"tasks": 0})),
        _target_state(connector, older="PAUSED", state=STOPPED),
    ]


def records_that_start(connector: str) -> list[ConnectRecord]:
    """Return what a worker writes when it is asked to resume a connector."""
    return [_target_state(connector, older="STARTED", state="STARTED")]


def _target_state(connector: str, *, older: str, state: str) -> ConnectRecord:
    value = json.dumps({"state": older, "state.v2": state})
    return ConnectRecord(f"target-state-{connector}", value)


def _fields(value: bytes | None) -> dict[str, Any]:
    try:
        fields = json.loads(value or b"{}")
    except ValueError:  # a UnicodeDecodeError is one, too
        return {}
    return fields if isinstance(fields, dict) else {}
