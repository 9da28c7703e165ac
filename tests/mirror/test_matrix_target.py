"""The failure matrix, target side: a change of the target by others is reported."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eos_mirror.testing import KafkaCluster, compare_partition, read_topic, wait_until
from eos_mirror.testing.entry import environ_for
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.crashes import hold_a_writer
from tests.mirror.surgery import (
    delete_topic,
    foreign_writer,
    keep_copy,
    produce_values,
    put_back,
)
from tests.mirror.toolbox import Mirror, mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

SELDOM = {"refresh_topics_interval_seconds": 600}
"""The driver does not refresh topics in the meantime."""


def wait_caught_up(site: Site, *, within_s: float = 60) -> None:
    """Wait until the shadow offsets are at the ends of the source."""
    site.view.wait_caught_up(site.topic, site.remote, partitions=site.partitions, within_s=within_s)


def foreign_stop_of(running: Mirror) -> str:
    """Return why a partition stopped because of foreign records; the run must exit with 1."""
    stopped = running.wait_for("partition.stopped", within_s=30)
    assert stopped["cause"] == "ForeignWriter", stopped
    assert running.stop() == 1, running.errors
    return str(stopped["reason"])


@pytest.fixture(scope="module")
def frail(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A target of one node whose files tests may change, and that creates topics by itself."""
    config = {"auto.create.topics.enable": True}
    with KafkaCluster(name="frail", broker_config=config) as cluster:
        yield cluster


def test_t4_a_foreign_record_inside_a_transaction_of_ours_stops_its_partition(
    site: Site,
) -> None:
    """The transaction is not committed, and the other partitions are mirrored to their ends."""
    config = site.config(transaction_boundary_interval_ms=5_000)
    with config.open("a") as file:  # a foreign record cannot be inside a batch
        file.write(f"{site.flow.target}.producer.batch.num.messages = 100\n")
    with mirror(config, "--once") as first:
        assert first.wait() == 0, first.errors
    # the next transactions are long, because all their records are on the source already
    site.produce(100_000)
    with mirror(config, env=environ_for(pause_at="begun:1")) as running:
        task = hold_a_writer(running)
        with foreign_writer(site):
            os.kill(task, signal.SIGCONT)
            running.wait_for("partition.stopped", within_s=30)
        wait_until(
            lambda: all(site.compare().partitions[p].exact for p in (1, 2, 3)),
            within=timedelta(seconds=60),
            what="the other partitions",
        )
        reason = foreign_stop_of(running)

    assert not running.found("task.restarting"), running.events
    assert f"{site.remote}-0" in reason
    assert "someone else writes this partition" in reason
    source = read_topic(site.source.client_config(), site.topic, partitions=4)
    target = read_topic(site.target.client_config(), site.remote, partitions=4)
    for number, position in site.view.positions(site.remote, 4).items():
        ours = [record for record in target[number] if record.value != b"foreign"]
        assert ours == source[number][: max(0, position)], "more or less than was committed"


def test_t4_a_foreign_record_between_two_transactions_is_reported(site: Site) -> None:
    """Mirrored records stay exact and in order; the event counts the foreign offsets."""
    site.produce(400)
    with mirror(site.config()) as running:
        running.wait_for("ready")
        wait_caught_up(site)
        produce_values(site.target, site.remote, [b"foreign"] * 3, partition=1)
        site.produce(400, start=400)
        gap = running.wait_for("partition.gap")
        wait_caught_up(site)
        assert running.stop() == 0, running.errors

    assert gap["partition"] == f"{site.remote}-1"
    assert gap["offsets"] == 3
    compared = site.compare()
    assert compared.partitions[1].foreign == 3
    assert compared.partitions[1].first_difference is not None
    assert all(compared.partitions[p].exact for p in (0, 2, 3)), str(compared)
    source = read_topic(site.source.client_config(), site.topic, partitions=4)[1]
    target = read_topic(site.target.client_config(), site.remote, partitions=4)[1]
    ours = [record for record in target if record.value != b"foreign"]
    assert compare_partition(source, ours).exact


def reasons_of(running: Mirror) -> list[str]:
    """Return why topics were refused, partitions stopped or the task failed, so far."""
    names = ("topic.refused", "partition.stopped", "task.failed")
    return [str(event["reason"]) for name in names for event in running.found(name)]


@pytest.mark.parametrize("refresh", [1, 600], ids=["driver looks", "driver does not look"])
def test_t1_a_remote_topic_deleted_while_it_is_written_is_not_created_again(
    tmp_path: Path, source_cluster: Cluster, frail: KafkaCluster, refresh: int
) -> None:
    """It is refused or its partitions stop, with the reason, even if brokers create topics."""
    site = make_site(tmp_path, source_cluster, frail)
    site.produce(400)
    config = site.config(refresh_topics_interval_seconds=refresh)
    with mirror(config) as running:
        running.wait_for("ready")
        wait_caught_up(site)
        delete_topic(frail, site.remote)
        site.produce(400, start=400)
        wait_until(
            lambda: bool(reasons_of(running)),
            within=timedelta(seconds=50),  # the client keeps the records for 30
            what="a reason",
        )
        assert running.stop() == 1, running.errors

    assert site.remote in reasons_of(running)[0]
    assert site.remote not in frail.admin().list_topics(timeout=10).topics, "created again"

    with mirror(config, "--once") as again:
        assert again.wait() in {1, 4}, again.errors


def test_t2_a_target_that_lost_its_end_while_nobody_looked_is_not_built_upon(
    tmp_path: Path, source_cluster: Cluster, frail: KafkaCluster
) -> None:
    """However often it is started again, no record becomes visible after the hole."""
    site = make_site(tmp_path, source_cluster, frail, partitions=1)
    config = site.config(**SELDOM)
    mirror_half_and_lose_the_rest(site, config, frail, kept=tmp_path)
    for _ in range(3):
        with mirror(config, "--once") as again:
            assert again.wait() == 1, again.events
        assert any("lost its end" in reason for reason in reasons_of(again)), again.events

    (arrived,) = read_topic(frail.client_config(), site.remote)
    assert [record.value for record in arrived] == [b"value-%07d" % i for i in range(100)]


def test_t2_a_target_that_loses_its_end_under_a_running_task_is_reported(
    tmp_path: Path, source_cluster: Cluster, frail: KafkaCluster
) -> None:
    """A transaction whose offsets are lower than expected is not committed."""
    site = make_site(tmp_path, source_cluster, frail, partitions=1)
    site.produce(100)
    with mirror(site.config(**SELDOM)) as running:
        running.wait_for("ready")
        wait_caught_up(site)
        keep_copy(frail, site.remote, into=tmp_path)
        site.produce(200, start=100)
        wait_caught_up(site)
        put_back(frail, site.remote, kept=tmp_path)
        site.produce(10, start=300)
        reason = foreign_stop_of(running)

    assert f"{site.remote}-0" in reason
    assert "lost its end" in reason
    (arrived,) = read_topic(frail.client_config(), site.remote)
    assert [record.value for record in arrived] == [b"value-%07d" % i for i in range(100)]


def mirror_half_and_lose_the_rest(
    site: Site, config: Path, frail: KafkaCluster, *, kept: Path
) -> None:
    """Mirror 110 records, lose the last 10 on the target, and produce 100 more."""
    for start, count in ((0, 100), (100, 10)):
        site.produce(count, start=start)
        with mirror(config, "--once") as running:
            assert running.wait() == 0, running.errors
        if start == 0:
            keep_copy(frail, site.remote, into=kept)
    put_back(frail, site.remote, kept=kept)
    site.produce(100, start=110)


def test_t5_a_remote_topic_with_its_own_clock_and_codec_is_warned_of(site: Site) -> None:
    """Everything but the timestamps arrives unchanged."""
    site.target.create_topic(
        site.remote,
        site.partitions,
        config={"message.timestamp.type": "LogAppendTime", "compression.type": "zstd"},
    )
    site.produce(4_000)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors

    (warning,) = running.found("flow.warning")
    assert "LogAppendTime" in warning["reason"]
    assert site.remote in warning["reason"]
    source = read_topic(site.source.client_config(), site.topic, partitions=4)
    target = read_topic(site.target.client_config(), site.remote, partitions=4)
    assert [[(r.key, r.value, r.headers) for r in p] for p in source] == [
        [(r.key, r.value, r.headers) for r in p] for p in target
    ]


@pytest.mark.parametrize("codec", ["gzip", "uncompressed"])
def test_t5_another_codec_of_the_target_changes_nothing(site: Site, codec: str) -> None:
    """Brokers that recompress or decompress the records do not change them."""
    site.target.create_topic(site.remote, site.partitions, config={"compression.type": codec})
    site.produce(4_000)
    config = site.config()
    with config.open("a") as file:
        file.write(f"{site.flow.target}.producer.compression.type = lz4\n")

    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors

    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 4_000


def test_t6_a_target_that_throttles_the_mirror_only_slows_it_down(site: Site) -> None:
    """A quota causes no error, no restart and no duplicate."""
    client = f"{site.flow.name}|target-producer"
    site.target.tool(
        "ConfigCommand", "--alter", "--entity-type", "clients", "--entity-name", client,
        "--add-config", "producer_byte_rate=25000",
    )  # fmt: skip
    site.produce(40_000)
    with mirror(site.config(), "--once") as running:
        assert running.wait(within_s=120) == 0, running.errors

    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 40_000
    assert is_throttled(site, client), "nothing was slowed down: the test proves nothing"


def is_throttled(site: Site, client: str) -> bool:
    """Return whether the quota throttles a client with this name."""
    topic = f"{site.topic}-throttled"
    site.target.create_topic(topic, 1)
    struck: list[object] = []
    producer = Producer(
        {**site.target.client_config(), "client.id": client, "throttle_cb": struck.append}
    )
    for _ in range(800):  # above the quota also when the broker has forgotten what was mirrored
        producer.produce(topic, b"x" * 1_000)
    assert producer.flush(60) == 0
    with suppress(TimeoutError):  # the callback comes after the last delivery
        wait_until(
            lambda: producer.poll(0.1) >= 0 and bool(struck),
            within=timedelta(seconds=10),
            what="a throttled response",
        )
    return bool(struck)
