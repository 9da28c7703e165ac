"""The lag of what is not mirrored is never 0: in `status` and in the metrics."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.partition_metrics import FlowPartitionMetrics
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.settings.clients import source_admin
from eos_mirror.settings.load import load_settings
from tests.mirror.command_line import status
from tests.mirror.conftest import Site
from tests.mirror.surgery import delete_topic
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers


def partitions(site: Site, config: Path) -> list[Mapping[str, Any]]:
    """Return the objects of the partitions in `status --json`."""
    found: list[Mapping[str, Any]] = json.loads(status(config, "--json"))["partitions"]
    assert len(found) == site.partitions
    return found


def measured(site: Site, config: Path) -> dict[str, float | None]:
    """Return the metric `lag.records` of each remote partition."""
    (settings,) = load_settings(config).flows
    pairs = {
        TopicPartition(site.topic, p): TopicPartition(site.remote, p)
        for p in range(site.partitions)
    }
    metadata = ClusterMetadata(source_admin(settings), side=Side.SOURCE)
    metrics = FlowPartitionMetrics(settings, metadata, lambda: pairs)
    metrics.look()
    return {where["partition"]: values.get("lag.records") for where, values in metrics.read()}


def test_a_partition_without_a_position_lags_by_its_whole_log(site: Site) -> None:
    """Before, `status` said 0 for a topic that was never mirrored, and the metric was missing."""
    site.produce(400)
    config = site.config()

    assert [one["lag"] for one in partitions(site, config)] == [100] * site.partitions
    assert f"  {site.topic}: 4 partitions, lag 400: 4 not running\n" in status(config)
    site.target.create_topic(site.remote, site.partitions)
    assert measured(site, config) == dict.fromkeys("0123", 100)


def test_where_a_flow_does_not_begin_at_the_start_the_lag_is_unknown(site: Site) -> None:
    """It depends on where the first task will begin."""
    site.produce(400)
    config = site.config(start_position="latest")

    assert [one["lag"] for one in partitions(site, config)] == [None] * site.partitions
    assert f"  {site.topic}: 4 partitions, lag unknown: 4 not running\n" in status(config)
    site.target.create_topic(site.remote, site.partitions)
    assert measured(site, config) == {}


def test_a_topic_that_was_created_again_lags_by_its_whole_log(site: Site) -> None:
    """
    Also when the new log is longer than the old one: the position is of another topic id.

    Before, the lag was 0, or what lies beyond the old position.
    """
    site.produce(400)
    config = site.config()
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors
    delete_topic(site.source, site.topic)
    site.source.create_topic(site.topic, site.partitions)
    site.produce(40)

    for one in partitions(site, config):
        assert (one["lag"], one["replaced"], one["state"]) == (10, True, "failed")
        assert one["position"] > one["end"]
    said = status(config)
    assert f"  {site.topic}: 4 partitions, lag 40: 4 failed\n" in said
    assert f"  {site.topic}-0: failed (SourceDataLost): nothing of it is mirrored" in said
    assert measured(site, config) == dict.fromkeys("0123", 10)
    site.produce(800, start=40)
    assert [one["lag"] for one in partitions(site, config)] == [210] * site.partitions
    assert measured(site, config) == dict.fromkeys("0123", 210)
