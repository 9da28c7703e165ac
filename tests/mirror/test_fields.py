"""What a record is made of, and what happens to what the client library cannot carry."""

import time

import pytest
from confluent_kafka import Producer

from eos_mirror.testing.checker import compare_topics, read_topic
from tests.mirror.conftest import Site
from tests.mirror.raw import RawRecord, produce_raw
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

NOW_MS = time.time_ns() // 1_000_000


def test_every_field_arrives_unchanged(site: Site) -> None:
    """Null, empty and binary keys, values and headers, their order, and timestamps."""
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
    """No timestamp, a very old one, and one that brokers refuse by default."""
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
    """The records before it arrive, the partition stops and says so, the others go on."""
    good = [RawRecord(timestamp=NOW_MS, value=b"good %d" % i) for i in range(5)]
    produce_raw(site.source.admin(), site.topic, 0, good)
    produce_raw(site.source.admin(), site.topic, 0, [bad])
    produce_raw(site.source.admin(), site.topic, 0, good)
    produce_raw(site.source.admin(), site.topic, 1, good)

    with mirror(site.config(), "--once") as running:
        assert running.wait() == 1, running.errors

    stopped = running.found("partition.stopped")
    assert [event["partition"] for event in stopped] == [f"{site.topic}-0"]
    assert reason in stopped[0]["reason"]
    assert "next_offset=5" in stopped[0]["reason"]
    arrived = read_topic(site.target.client_config(), site.remote, partitions=site.partitions)
    wanted = [record.value for record in good]
    assert [record.value for record in arrived[0]] == wanted
    assert [record.value for record in arrived[1]] == wanted
