"""All fields of a record are copied; a record that the client cannot carry stops."""

import time
from datetime import timedelta

import pytest
from confluent_kafka import Producer

from eos_mirror.testing import wait_until
from eos_mirror.testing.checker import compare_topics, read_topic
from tests.mirror.conftest import Site
from tests.mirror.raw import RawRecord, produce_raw
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

NOW_MS = time.time_ns() // 1_000_000


def test_every_field_arrives_unchanged(site: Site) -> None:
    """Null, empty and binary fields, the order of headers, and timestamps arrive unchanged."""
    producer = Producer(site.source.client_config())
    headers: list[tuple[str, str | bytes | None]] = [
        ("a", b"1"),
        ("b", None),
        ("a", b""),
        ("ü", b"\xff\x00"),
    ]
    for key in (None, b"", b"k", b"\x00\xff"):
        for value in (None, b"", b"v", b"\x00" * 1000):
            for some in (None, [], headers):
                producer.produce(site.topic, value, key, 0, timestamp=NOW_MS, headers=some)
    assert producer.flush(10) == 0

    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors

    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 4 * 4 * 3


@pytest.mark.parametrize("timestamp", [-1, 1, NOW_MS + 3 * 3_600_000], ids=["none", "1970", "+3h"])
def test_an_odd_timestamp_arrives_unchanged(site: Site, timestamp: int) -> None:
    """No timestamp, a very old one, and one that brokers refuse by default arrive unchanged."""
    if timestamp > NOW_MS:
        limit = {"message.timestamp.after.max.ms": str(2**62)}
        site.source.create_topic(f"{site.topic}-future", 1, config=limit)
    topic = f"{site.topic}-future" if timestamp > NOW_MS else site.topic
    records = [RawRecord(timestamp=timestamp, value=b"%d" % i) for i in range(3)]
    produce_raw(site.source.admin(), topic, 0, records)

    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors

    compared = compare_topics(
        site.source.client_config(),
        topic,
        site.target.client_config(),
        f"{site.flow.source}.{topic}",
        1,
    )
    assert compared.exact, str(compared)
    assert compared.matched == 3


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (RawRecord(timestamp=0, value=b"bad"), "timestamp 0"),
        (RawRecord(timestamp=NOW_MS, value=b"bad", headers=[(b"\xff", b"v")]), "not valid UTF-8"),
    ],
    ids=["timestamp 0", "header key"],
)
def test_a_record_that_cannot_be_carried_stops_its_partition(
    site: Site, bad: RawRecord, reason: str
) -> None:
    """The client library cannot: records before it arrive, and only its partition stops."""
    good = [RawRecord(timestamp=NOW_MS, value=b"good %d" % i) for i in range(5)]
    produce_raw(site.source.admin(), site.topic, 0, good)
    produce_raw(site.source.admin(), site.topic, 0, [bad])
    produce_raw(site.source.admin(), site.topic, 0, good)
    produce_raw(site.source.admin(), site.topic, 1, good)

    with mirror(site.config(data_path="client"), "--once") as running:
        assert running.wait() == 1, running.errors

    stopped = running.found("partition.stopped")
    assert [event["partition"] for event in stopped] == [f"{site.topic}-0"]
    assert reason in stopped[0]["reason"]
    assert "next_offset=5" in stopped[0]["reason"]
    assert site.view.positions(site.remote, site.partitions)[0] == 5, "the record was skipped"
    arrived = read_topic(site.target.client_config(), site.remote, partitions=site.partitions)
    wanted = [record.value for record in good]
    assert [record.value for record in arrived[0]] == wanted
    assert [record.value for record in arrived[1]] == wanted


def test_a_record_that_the_target_refuses_stops_its_partition_only(site: Site) -> None:
    """The reason names the size of the record and the topic's limit; no process exits."""
    site.produce(400)
    with mirror(site.config()) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        site.target.tool(
            "ConfigCommand", "--alter", "--entity-type", "topics", "--entity-name", site.remote,
            "--add-config", "max.message.bytes=20000",
        )  # fmt: skip
        producer = Producer(site.source.client_config())
        producer.produce(site.topic, b"x" * 50_000, partition=0)
        assert producer.flush(10) == 0
        stopped = running.wait_for("partition.stopped")
        site.produce(400, start=400)
        wait_until(
            lambda: all(
                position >= 200
                for p, position in site.view.positions(site.remote, 4).items()
                if p != 0
            ),
            within=timedelta(seconds=30),
            what="the other partitions",
        )
        assert running.stop() == 1, running.errors

    assert stopped["partition"] == f"{site.topic}-0"
    assert not running.found("task.restarting")
    assert "MSG_SIZE_TOO_LARGE" in stopped["reason"]
    assert f"50068 bytes, and {site.remote} accepts 20000" in stopped["reason"]
    compared = site.compare()
    assert compared.partitions[0].missing == 101
    assert all(compared.partitions[p].exact for p in (1, 2, 3)), str(compared)


def test_batches_fit_a_target_with_a_small_limit(site: Site) -> None:
    """Many small records are not sent as one batch that the target would refuse."""
    limit = {"max.message.bytes": "5000"}
    topic = f"{site.topic}-small"
    site.source.create_topic(topic, 1, config=limit)
    small = Site(**{**vars(site), "topic": topic, "partitions": 1})
    producer = Producer({**site.source.client_config(), "batch.size": 4_000})
    for i in range(5_000):
        producer.produce(topic, b"value-%07d" % i, partition=0)
    assert producer.flush(10) == 0

    with mirror(small.config(), "--once") as running:
        assert running.wait() == 0, running.errors

    compared = small.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 5_000
