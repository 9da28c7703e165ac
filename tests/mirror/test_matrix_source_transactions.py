"""Rows S5 to S7 of the failure matrix: aborted records, control records, large transactions."""

import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eos_mirror.testing import KafkaCluster, read_topic, wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.source_transactions import transact
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]


@pytest.fixture(scope="module")
def compacting(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A source that compacts without delay."""
    config = {"log.cleaner.backoff.ms": 100}
    with KafkaCluster(name="compacting", broker_config=config) as cluster:
        yield cluster


def test_s5_aborted_records_never_arrive_and_a_hanging_transaction_only_stalls(
    site: Site,
) -> None:
    """Records after an open transaction wait for its end; other partitions do not wait."""
    transact(site, [b"aborted-%d" % i for i in range(20)], commit=False)
    transact(site, [b"committed-%d" % i for i in range(20)], commit=True)
    hanging = Producer({**site.source.client_config(), "transactional.id": uuid.uuid4().hex})
    hanging.init_transactions(10)
    hanging.begin_transaction()
    hanging.produce(site.topic, b"hanging", partition=0)
    hanging.flush(10)
    site.produce(400)
    with mirror(site.config()) as running:
        running.wait_for("ready")
        wait_until(
            lambda: site.view.positions(site.remote, 4) == {0: 42, 1: 100, 2: 100, 3: 100},
            within=timedelta(seconds=30),
            what="everything before the open transaction",
        )
        assert site.values()[0] == [b"committed-%d" % i for i in range(20)]
        hanging.commit_transaction(10)
        site.wait_caught_up()
        assert running.stop() == 0, running.errors

    assert not running.found("task.restarting")
    assert not running.found("partition.stopped")
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 20 + 1 + 400


def test_s6_a_compacted_source_with_control_records_is_mirrored_over_its_gaps(
    tmp_path: Path, compacting: KafkaCluster, target_cluster: Cluster
) -> None:
    """Offsets that compaction removed are not waited for and not reported as lost."""
    site = make_site(tmp_path, compacting, target_cluster, partitions=1)
    compacted = Site(**{**vars(site), "topic": f"{site.topic}-compacted"})
    quick = {
        "cleanup.policy": "compact",
        "segment.bytes": str(2**20),
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "0",
    }
    compacting.create_topic(compacted.topic, 1, config=quick)
    producer = Producer({**compacting.client_config(), "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(10)
    for turn in range(10):
        producer.begin_transaction()
        for key in range(50):  # every tenth one survives, so that gaps lie between records
            unique = b"%d-%d" % (turn, key)
            producer.produce(compacted.topic, unique, unique if key % 10 == 0 else b"%d" % key, 0)
        producer.commit_transaction(10)
    written = 10 * (50 + 1)
    wait_until(  # a commit is answered before its marker is written
        lambda: compacted.view.ends(compacted.topic, 1) == {0: written},
        within=timedelta(seconds=30),
        what="the last marker",
    )
    wait_until(
        lambda: survivors(compacted) < 500,
        within=timedelta(seconds=30),
        what="the log cleaner",
    )

    with mirror(compacted.config(), "--once") as running:
        assert running.wait() == 0, running.errors

    compared = compacted.compare()
    assert compared.exact, str(compared)
    assert 50 <= compared.matched < 500
    assert compacted.view.positions(compacted.remote, 1) == {0: written}


def survivors(site: Site) -> int:
    """Count the records of partition 0 that are still on the source."""
    (records,) = read_topic(site.source.client_config(), site.topic)
    return len(records)


def test_s7_a_source_transaction_larger_than_ours_arrives_whole(site: Site) -> None:
    """A large source transaction is split into several, and all its records arrive."""
    transact(site, [b"%06d" % i for i in range(30_000)], commit=True)
    with mirror(site.config(transaction_boundary_records=1_000), "--once") as running:
        assert running.wait() == 0, running.errors

    (flow,) = running.found("flow.summary")[-1:]
    assert flow["transactions"] >= 20, flow
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 30_000
