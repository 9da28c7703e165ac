"""The ledger and `status`: what a person on call can read after a fault."""

import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.ledger import Kind, LedgerEntry
from eos_mirror.core.side import Side
from eos_mirror.driver.ledger import STORM_RESTARTS, LedgerKeeper
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.kafka.topics import Topics
from eos_mirror.settings import clients
from eos_mirror.settings.load import load_settings
from eos_mirror.settings.model import FlowSettings
from eos_mirror.testing import wait_until
from tests.mirror.command_line import status
from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

SOON = timedelta(seconds=30)


def as_objects(printed: str) -> list[dict[str, Any]]:
    """Return the objects that `--json` prints."""
    return [json.loads(line) for line in printed.splitlines()]


def settings_of(config: Path) -> FlowSettings:
    """Return the settings of the only flow of a configuration."""
    (flow,) = load_settings(config).flows
    return flow


def expire(site: Site, partition: int) -> None:
    """Delete every record of a source partition."""
    end = site.view.ends(site.topic, site.partitions)[partition]
    request = [ClientPartition(site.topic, partition, end)]
    for answer in site.source.admin().delete_records(request).values():
        answer.result(10)


def test_status_says_how_far_behind_each_topic_is(site: Site) -> None:
    """The lag is right before the first run, after it, and with records that wait."""
    config = site.config()
    assert f"{site.flow}: not running, never ran, 4 partitions, lag 0" in status(config)
    site.produce(100)
    with mirror(config, "--once") as run:
        assert run.wait() == 0, run.errors
    site.produce(8, start=100)

    (flow,) = as_objects(status(config, str(site.flow), "--json"))

    ends = site.view.ends(site.topic, site.partitions)
    assert (flow["mode"], flow["lag"]) == ("exactly-once", 8)
    for one in flow["partitions"]:
        number = int(one["source"].rpartition("-")[2])
        assert one["remote"] == f"{site.remote}-{number}"
        assert (one["end"], one["lag"]) == (ends[number], ends[number] - one["position"])
    assert f"{site.topic}: 4 partitions, lag 8: 4 not running\n" in status(config)
    assert status(config, "--ledger") == f"{site.flow}: 0 entries\n"


def test_a_fence_and_a_stop_are_in_the_ledger(site: Site) -> None:
    """The ledger has the fence after a killed task, and the stop of an expired partition."""
    config = site.config()
    site.produce(100)
    with mirror(config) as run:
        run.wait_for("ready")
        os.kill(run.pid(), signal.SIGKILL)
        fenced = run.wait_for("incarnation.fenced")
        site.wait_caught_up()
        assert run.stop() == 0, run.errors
    site.produce(100, start=100)
    expire(site, 2)

    with mirror(config) as run:
        stopped = run.wait_for("partition.stopped")
        assert run.stop() == 1

    entries = as_objects(status(config, "--ledger", "--json"))
    (fence, *_), (stop,) = (
        [entry for entry in entries if entry["kind"] == kind] for kind in ("fence", "stop")
    )
    assert fence["transactional_id"] == fenced["transactional_id"]
    assert (stop["partition"], stop["cause"]) == (f"{site.topic}-2", "SourceDataLost")
    assert stop["reason"] == stopped["reason"]
    shown = status(config, "--ledger")
    assert f" stop  partition {site.topic}-2, cause SourceDataLost, reason " in shown


Events = list[tuple[str, Mapping[str, Any]]]


@contextmanager
def keeper(settings: FlowSettings, failures: Events) -> Iterator[LedgerKeeper]:
    """Run the part of the driver that writes the ledger."""
    topics = Topics(clients.target_admin(settings), side=Side.TARGET)
    keeper = LedgerKeeper(settings, topics, on_event=lambda *event: failures.append(event))
    keeper.start()
    try:
        yield keeper
    finally:
        keeper.stop()


def written(settings: FlowSettings) -> Sequence[LedgerEntry]:
    """Return the entries of the ledger."""
    return read_ledger(clients.target_admin(settings), settings.flow)


def test_restarts_are_one_entry_once_they_are_a_storm(site: Site) -> None:
    """Single restarts are only events, so that the ledger shows the other entries."""
    settings = settings_of(site.config())
    failures: Events = []
    with keeper(settings, failures) as listening:
        for number in range(2 * STORM_RESTARTS):
            listening.hear("task.restarting", {"task": 0, "reason": f"reason {number}"})
        listening.hear("ready", {})
        listening.hear("partition.gap", {"partition": "orders-0", "offsets": 7})

    storm, gap = written(settings)

    assert storm.kind is Kind.STORM
    assert storm.details["restarts"] == STORM_RESTARTS
    assert storm.details["reason"] == f"reason {STORM_RESTARTS - 1}"
    assert (gap.kind, gap.details["offsets"]) == (Kind.GAP, 7)
    assert not failures


def test_a_ledger_that_cannot_be_made_is_told_once_and_holds_nobody_up(site: Site) -> None:
    """A replication factor above the number of brokers is reported once and blocks no caller."""
    settings = settings_of(site.config(internal_topic_replication_factor=9))
    failures: Events = []
    with keeper(settings, failures) as listening:
        for _ in range(3):
            listening.hear("partition.gap", {"partition": "orders-0", "offsets": 7})
        wait_until(lambda: bool(failures), within=SOON, what="a failure")

    ((name, fields),) = failures
    assert name == "ledger.failed"
    assert "replication factor" in str(fields["reason"]).lower()
    assert not written(settings)
