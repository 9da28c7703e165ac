"""What Kafka Connect stores of a connector is read, and written as a worker writes it."""

import json

import pytest

from eos_mirror.core.connect_connectors import (
    ConnectorFacts,
    connector_facts,
    records_that_start,
    records_that_stop,
)

NAME = "MirrorSourceConnector"
CONFIGURED = (f"connector-{NAME}", b'{"properties":{"name":"MirrorSourceConnector"}}')


def stored(state: str) -> tuple[str, bytes]:
    """Return the record of a target state."""
    return f"target-state-{NAME}", json.dumps({"state": "PAUSED", "state.v2": state}).encode()


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], ConnectorFacts()),
        ([CONFIGURED], ConnectorFacts(exists=True)),
        ([CONFIGURED, stored("STOPPED")], ConnectorFacts(exists=True, is_stopped=True)),
        ([CONFIGURED, stored("PAUSED")], ConnectorFacts(exists=True)),
        ([CONFIGURED, stored("STOPPED"), stored("STARTED")], ConnectorFacts(exists=True)),
        ([CONFIGURED, (f"connector-{NAME}", None)], ConnectorFacts()),
        ([("connector-another", b"{}"), ("target-state-another", b"{}")], ConnectorFacts()),
        ([(f"target-state-{NAME}", b'{"state":"PAUSED"}')], ConnectorFacts()),
        ([(f"target-state-{NAME}", b"\xff")], ConnectorFacts()),
        ([(f"tasks-fencing-{NAME}", b"[1]")], ConnectorFacts()),
        ([(f"tasks-fencing-{NAME}", b'{"task-count":"many"}')], ConnectorFacts()),
        ([(None, b"{}")], ConnectorFacts()),
    ],
)
def test_the_newest_record_of_a_key_counts(
    records: list[tuple[str | None, bytes | None]], expected: ConnectorFacts
) -> None:
    """Records of other connectors, and what cannot be read, say nothing."""
    assert connector_facts(records, NAME) == expected


def test_every_task_that_ever_had_an_id_is_known() -> None:
    """Fewer tasks may be configured later: the id of a removed one may still write."""
    key = f"tasks-fencing-{NAME}"
    records = [(key, b'{"task-count":4}'), (key, b'{"task-count":2}')]
    assert connector_facts(records, NAME).tasks_ever == 4


def test_a_connector_is_stopped_and_started() -> None:
    """It has no tasks before it is stopped, so no worker starts them in between."""
    assert [key for key, _ in records_that_stop(NAME)] == [f"commit-{NAME}", f"target-state-{NAME}"]
    written = [(key, value.encode()) for key, value in records_that_stop(NAME)]
    assert connector_facts([CONFIGURED, *written], NAME).is_stopped
    written += [(key, value.encode()) for key, value in records_that_start(NAME)]
    assert not connector_facts([CONFIGURED, *written], NAME).is_stopped
