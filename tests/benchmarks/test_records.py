"""The digest of a topic, which proves that a copy is exact."""

from typing import Any

import pytest
from confluent_kafka import Producer

from benchmarks.records import digest
from eos_mirror.testing import KafkaCluster

Row = dict[str, Any]
ROWS: list[Row] = [
    {"partition": i % 2, "key": b"k%d" % i, "value": b"v%d" % i, "timestamp": 1_000 + i}
    for i in range(1_200)
]
ROWS[1107] |= {"headers": [("h", b"1")]}
ROWS[10] |= {"key": b"", "value": None}


def written(cluster: KafkaCluster, topic: str, rows: list[Row], *, batch: int) -> str:
    """Write the rows to a topic of two partitions, in batches of this size."""
    cluster.create_topic(topic, 2)
    producer = Producer({**cluster.client_config(), "batch.num.messages": batch, "linger.ms": 50})
    for row in rows:
        producer.produce(topic, **row)
    assert producer.flush(30) == 0
    return topic


def test_equal_records_have_an_equal_digest_however_they_are_cut(
    source_cluster: KafkaCluster,
) -> None:
    """The digest does not depend on batches, nor on how reading splits the records."""
    large = digest(source_cluster, written(source_cluster, "digest-large", ROWS, batch=10_000))
    small = digest(source_cluster, written(source_cluster, "digest-small", ROWS, batch=3))
    assert large == small
    assert large[0] == len(ROWS)


CHANGES: dict[str, dict[int, Row]] = {
    "value": {20: ROWS[20] | {"value": b"w20"}},
    "timestamp": {20: ROWS[20] | {"timestamp": 7}},
    "no-key-for-an-empty-one": {10: ROWS[10] | {"key": None}},
    "an-empty-value-for-none": {10: ROWS[10] | {"value": b""}},
    "header": {1107: ROWS[1107] | {"headers": [("h", b"2")]}},
    "header-of-its-neighbour": {
        1107: ROWS[1107] | {"headers": []},
        1109: ROWS[1109] | {"headers": [("h", b"1")]},
    },
    "order": {20: ROWS[22], 22: ROWS[20]},
    "a-byte-over-the-edge": {20: ROWS[20] | {"key": b"k20v", "value": b"20"}},
    "two-values-for-one": {20: ROWS[20] | {"value": b"v2"}, 22: ROWS[22] | {"value": b"0v22"}},
}


@pytest.fixture(scope="module")
def exact(source_cluster: KafkaCluster) -> tuple[int, Any]:
    """Return the digest of the unchanged rows."""
    return digest(source_cluster, written(source_cluster, "digest-exact", ROWS, batch=500))


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_not_the_same_has_another(
    source_cluster: KafkaCluster, exact: tuple[int, Any], name: str
) -> None:
    """A difference in one field of one record changes the digest."""
    rows = [CHANGES[name].get(i, row) for i, row in enumerate(ROWS)]
    topic = written(source_cluster, f"digest-{name}", rows, batch=500)
    changed = digest(source_cluster, topic)
    assert changed[0] == exact[0]
    assert changed != exact
