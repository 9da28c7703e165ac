"""The failure matrix, source side: whatever the source does, no record is skipped silently."""

import os
import signal
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.source_transactions import transact
from tests.mirror.surgery import (
    corrupt,
    delete_records,
    delete_topic,
    halted,
    keep_copy,
    produce_values,
    put_back,
    segment_of,
)
from tests.mirror.toolbox import Mirror, mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

SELDOM = {"refresh_topics_interval_seconds": 600}
"""The task detects the fault first: the driver checks topics only after what the task reports."""


@pytest.fixture(scope="module")
def frail(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A source of one node whose files tests may change; it compacts without delay."""
    config = {"log.cleaner.backoff.ms": 100}
    with KafkaCluster(name="frail", broker_config=config) as cluster:
        yield cluster


@pytest.mark.parametrize("count", [20, 2_000], ids=["shorter", "longer"])
def test_s2_a_topic_created_again_while_it_is_read_stops_its_partitions(
    site: Site, count: int
) -> None:
    """No record of the new topic is mirrored as one of the old topic, whatever its length."""
    site.produce(400)
    with mirror(site.config(**SELDOM)) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        delete_topic(site.source, site.topic)
        site.source.create_topic(site.topic, site.partitions)
        for partition in range(site.partitions):
            new = [b"new-%d" % i for i in range(count)]
            produce_values(site.source, site.topic, new, partition=partition)
        stopped = running.wait_for("partition.stopped", count=4, cause="SourceDataLost")
        assert running.stop() == 1, running.errors

    assert "next_offset=100" in stopped["reason"], stopped
    for number, values in enumerate(site.values()):
        assert values == [b"value-%07d" % i for i in range(number, 400, 4)]


def test_s9_a_corrupt_batch_stops_its_partition_where_it_is(
    tmp_path: Path, frail: KafkaCluster, target_cluster: Cluster
) -> None:
    """The batches before it arrive, it is not skipped, and the other partitions continue."""
    site = make_site(tmp_path, frail, target_cluster, partitions=2)
    batches = [[b"%d-%02d" % (batch, i) for i in range(50)] for batch in range(3)]
    for batch in batches:
        produce_values(frail, site.topic, batch)
        produce_values(frail, site.topic, batch, partition=1)
    with halted(frail):
        corrupt(segment_of(frail, site.topic), b"1-25")
    dump = frail.tool("DumpLogSegments", "--files", str(segment_of(frail, site.topic)))
    assert dump.stdout.count("isvalid: false") == 1, dump.stdout

    with mirror(site.config(), "--once") as running:
        assert running.wait() == 1, running.errors

    (stopped,) = running.found("partition.stopped")
    assert stopped["partition"] == f"{site.topic}-0"
    assert "next_offset=50" in stopped["reason"]
    assert "corrupt" in stopped["reason"]
    assert site.values() == [batches[0], [*batches[0], *batches[1], *batches[2]]]
    assert site.view.positions(site.remote, 2) == {0: 50, 1: 150}


def test_s1_a_topic_deleted_while_it_is_read_stops_its_partitions_only(site: Site) -> None:
    """The copy stays, the reason is reported, and another topic of the flow is still mirrored."""
    other = Site(**{**vars(site), "topic": f"{site.topic}-other"})
    other.source.create_topic(other.topic, other.partitions)
    site.produce(400)
    other.produce(400)
    with mirror(site.config(**SELDOM)) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        delete_topic(site.source, site.topic)
        stopped = running.wait_for("partition.stopped", count=4, cause="SourceDataLost")
        other.produce(400, start=400)
        other.wait_caught_up()
        running.wait_for("topic.deleted", topic=site.topic)
        assert running.stop() == 0, "nothing is left to mirror of it"

    assert "was deleted" in stopped["reason"]
    assert "next_offset=100" in stopped["reason"]
    assert not running.found("task.restarting")
    assert [len(values) for values in site.values()] == [100] * 4
    assert set(site.view.positions(site.remote, 4).values()) == {100}
    compared = other.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 800


def test_s1_a_flow_whose_last_topic_is_deleted_continues_with_the_next_one(site: Site) -> None:
    """The driver detects it before the task: the partitions are released, their offsets stay."""
    site.produce(400)
    with mirror(site.config()) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        delete_topic(site.source, site.topic)
        other = Site(**{**vars(site), "topic": f"{site.topic}-other"})
        other.source.create_topic(other.topic, other.partitions)
        other.produce(400)
        assert running.wait_for("topic.deleted")["topic"] == site.topic
        running.wait_for("topic.created", topic=other.remote)
        other.wait_caught_up()
        running.stop()

    assert not running.found("task.failed")
    assert len(running.found("task.restarting")) <= 1, "a storm of restarts"
    assert set(site.view.positions(site.remote, 4).values()) == {100}
    assert other.compare().exact


def test_s1_a_deleted_topic_ends_the_flow_if_the_file_says_so(site: Site) -> None:
    """The flow stops cleanly, and the next start mirrors the other topic without this one."""
    other = Site(**{**vars(site), "topic": f"{site.topic}-other"})
    other.source.create_topic(other.topic, other.partitions)
    site.produce(400)
    other.produce(400)
    config = site.config(source_topic_deleted="stop")
    with mirror(config) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        other.wait_caught_up()
        delete_topic(site.source, site.topic)
        gone = running.wait_for("topic.deleted")
        assert (gone["topic"], gone["remote"]) == (site.topic, site.remote)
        assert running.wait() == 1

    (ended,) = running.found("flow.ended")
    assert site.topic in ended["reason"]
    assert any(f"eos-mirror: {site.flow}: {site.topic} was deleted" in e for e in running.errors)
    assert [len(values) for values in site.values()] == [100] * 4
    other.produce(400, start=400)
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors
    compared = other.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 800


def hold(running: Mirror) -> int:
    """Pause the task's process and return its pid."""
    pid = running.pid()
    os.kill(pid, signal.SIGSTOP)
    return pid


def test_s3_retention_that_passes_a_running_task_stops_the_partition(site: Site) -> None:
    """Fetched records still arrive, and the reason names where the hole begins and ends."""
    site.produce(400)
    with mirror(site.config(**SELDOM)) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        task = hold(running)
        site.produce(40, start=400)  # the answer to the fetch that is waiting at the broker
        site.produce(400, start=440)
        delete_records(site.source, site.topic, before=200)
        os.kill(task, signal.SIGCONT)
        stopped = running.wait_for("partition.stopped", within_s=30)
        wait_until(
            lambda: all(site.view.positions(site.remote, 4)[p] == 210 for p in (1, 2, 3)),
            within=timedelta(seconds=30),
            what="the other partitions",
        )
        assert running.stop() == 1, running.errors

    position = site.view.positions(site.remote, 4)[0]
    assert 100 <= position <= 110
    assert stopped["cause"] == "SourceDataLost"
    assert stopped["partition"] == f"{site.topic}-0"
    assert f"next_offset={position}" in stopped["reason"]
    assert "starts at 200" in stopped["reason"]
    assert site.values()[0] == [b"value-%07d" % (4 * i) for i in range(position)]


def test_s3_retention_up_to_the_end_is_no_loss(site: Site) -> None:
    """Offsets after the last record are no data, and the position moves past them."""
    produce_values(site.source, site.topic, [b"first"])
    transact(site, [b"aborted"] * 9, commit=False)
    end = 1 + 9 + 1  # the control record comes a little later
    wait_until(
        lambda: site.view.ends(site.topic, 1) == {0: end},
        within=timedelta(seconds=10),
        what="the control record at the end",
    )
    with mirror(site.config()) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        assert running.stop() == 0, running.errors
    delete_records(site.source, site.topic, before=end)
    produce_values(site.source, site.topic, [b"last"])

    with mirror(site.config(), "--once") as again:
        assert again.wait() == 0, again.errors

    assert site.values()[0] == [b"first", b"last"]


def lose_the_end(site: Site, frail: KafkaCluster, *, kept: Path, regrown: int) -> None:
    """Replace the last 100 of 200 mirrored records by this many others."""
    put_back(frail, site.topic, kept=kept)
    assert site.view.ends(site.topic, 1) == {0: 100}, "nothing was lost"
    produce_values(frail, site.topic, [b"new-%d" % i for i in range(regrown)])


def assert_stopped_at_the_loss(site: Site, running: Mirror) -> None:
    """Assert that the partition stopped at its position, and that the copy is unchanged."""
    stopped = running.wait_for("partition.stopped", within_s=30)
    assert running.stop() == 1, running.errors
    assert stopped["cause"] == "SourceDataLost"
    assert "next_offset=200" in stopped["reason"]
    mirrored = [b"kept-%d" % i for i in range(100)] + [b"lost-%d" % i for i in range(100)]
    assert site.values() == [mirrored]
    assert site.view.positions(site.remote, 1) == {0: 200}


def fill_and_keep_half(site: Site, frail: KafkaCluster, *, kept: Path) -> None:
    """Produce 200 records, and keep a copy of the log with the first 100."""
    produce_values(frail, site.topic, [b"kept-%d" % i for i in range(100)])
    keep_copy(frail, site.topic, into=kept)
    produce_values(frail, site.topic, [b"lost-%d" % i for i in range(100)])


@pytest.mark.parametrize("regrown", [0, 500], ids=["shorter", "longer"])
def test_s4_a_source_that_lost_its_end_while_nobody_looked_stops_the_partition(
    tmp_path: Path, frail: KafkaCluster, target_cluster: Cluster, regrown: int
) -> None:
    """The loss is detected even if new records have the offsets that were mirrored before."""
    site = make_site(tmp_path, frail, target_cluster, partitions=1)
    fill_and_keep_half(site, frail, kept=tmp_path)
    with mirror(site.config(**SELDOM), "--once") as first:
        assert first.wait() == 0, first.errors
    lose_the_end(site, frail, kept=tmp_path, regrown=regrown)

    with mirror(site.config(**SELDOM)) as second:
        assert_stopped_at_the_loss(site, second)


@pytest.mark.parametrize("regrown", [0, 500], ids=["shorter", "longer"])
def test_s4_a_source_that_loses_its_end_under_a_running_task_stops_the_partition(
    tmp_path: Path, frail: KafkaCluster, target_cluster: Cluster, regrown: int
) -> None:
    """The loss is detected even if new records get the offsets before the task polls again."""
    site = make_site(tmp_path, frail, target_cluster, partitions=1)
    fill_and_keep_half(site, frail, kept=tmp_path)
    with mirror(site.config(**SELDOM)) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        task = hold(running)
        lose_the_end(site, frail, kept=tmp_path, regrown=regrown)
        os.kill(task, signal.SIGCONT)
        assert_stopped_at_the_loss(site, running)


def test_s4_a_marker_that_a_newer_leader_wrote_is_no_loss(
    tmp_path: Path, frail: KafkaCluster, target_cluster: Cluster
) -> None:
    """The position after a marker belongs to no record, so it has no epoch of a record."""
    site = make_site(tmp_path, frail, target_cluster, partitions=1)
    producer = Producer({**frail.client_config(), "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(site.topic, b"first", partition=0)
    assert producer.flush(10) == 0
    with halted(frail):
        pass
    producer.commit_transaction(30)
    end = 2  # with the marker
    wait_until(
        lambda: site.view.ends(site.topic, 1) == {0: end},
        within=timedelta(seconds=10),
        what="the marker",
    )
    for value in (b"second", b"third"):
        with mirror(site.config(), "--once") as running:
            assert running.wait() == 0, running.errors
        produce_values(frail, site.topic, [value])
    assert site.values() == [[b"first", b"second"]]
