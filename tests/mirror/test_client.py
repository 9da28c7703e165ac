"""`eos_mirror.client` answers the same questions about a cluster as Kafka's own client."""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from eos_mirror.client import MirrorClient, OffsetAndMetadata
from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.testing import KafkaCluster, wait_until
from tests.mirror.remote_clusters import WITHIN, Questions

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
TRANSLATED = ("A", "B")
ASKED = Questions(
    aliases=("A", "B", "C", "D"), translated=TRANSLATED, groups=("readers", "writers")
)
IDENTITY = {
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "source.cluster.alias": "A",
}
TOPICS = ("heartbeats", "A.heartbeats", "B.A.heartbeats", "D.D.heartbeats", "orders", "A.orders")


@pytest.fixture(scope="module")
def cluster(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A target with remote topics, checkpoints, and records of other tools in their topic."""
    with KafkaCluster(name="downstream") as cluster:
        for topic in TOPICS:
            cluster.create_topic(topic, 2)
        for alias, separator in product(TRANSLATED, ".-"):
            cluster.create_topic(f"{alias}{separator}checkpoints{separator}internal", 1)
        producer = Producer(cluster.client_config())

        def write(alias: str, key: bytes | None, value: bytes | None) -> None:
            producer.produce(f"{alias}.checkpoints.internal", value, key)

        for alias, group, number, upstream, downstream in (
            ("A", "readers", 0, 10, 8),
            ("A", "readers", 0, 20, 17),
            ("A", "readers", 1, 3, 3),
            ("A", "writers", 0, 1, 1),
            ("B", "readers", 0, 5, 4),
        ):
            partition = TopicPartition(f"{alias}.orders", number)
            checkpoint = Checkpoint(
                group=group,
                partition=partition,
                upstream=upstream,
                downstream=downstream,
                metadata=f"of {group}",
            )
            write(alias, checkpoint.key, checkpoint.value)
        write("A", b"", b"")
        write("A", b"not ours", b"either")
        producer.flush(30)
        yield cluster


@pytest.mark.brokers
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="default"),
        pytest.param({"replication.policy.separator": "-"}, id="separator"),
        pytest.param(IDENTITY, id="identity"),
    ],
)
def test_the_answers_are_those_of_kafkas_own_client(
    cluster: KafkaCluster, settings: Mapping[str, str]
) -> None:
    """Names, hops and offsets are equal with every policy; records of others are skipped."""
    assert ASKED.to_us(cluster, settings) == ASKED.to_java(cluster, settings)


@pytest.mark.brokers
def test_groups_are_found_by_a_pattern_and_strangers_are_counted(cluster: KafkaCluster) -> None:
    """A pattern matches whole names, and the last checkpoint of a partition counts."""
    with MirrorClient(cluster.client_config()) as client:
        found = client.remote_groups_offsets(re.compile("read.*"), "A", timeout=WITHIN)
        assert found == {
            "readers": {
                TopicPartition("A.orders", 0): OffsetAndMetadata(17, "of readers"),
                TopicPartition("A.orders", 1): OffsetAndMetadata(3, "of readers"),
            }
        }
        assert client.skipped == 2
        assert client.remote_topics("A") == {"A.heartbeats", "A.orders"}
        assert client.remote_topics() == {
            *("A.heartbeats", "B.A.heartbeats", "D.D.heartbeats", "A.orders")
        }


@pytest.mark.brokers
def test_the_consumer_of_the_page_continues_at_its_groups_offset(cluster: KafkaCluster) -> None:
    """The snippet of docs/client.md resumes at the translated offsets; only its address differs."""
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(snippet.replace("b:9092", cluster.bootstrap), names)  # noqa: S102 (our own page)
    names["consumer"].close()
    committed = CommittedOffsets(cluster.client_config(), "readers", side=Side.TARGET)
    partitions = [TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)]
    wait_until(
        lambda: len(committed.read(partitions)) == 2, within=WITHIN, what="both committed offsets"
    )
    found = committed.read(partitions)
    assert [found[p].position.next_offset for p in partitions] == [17, 3]


def test_an_application_needs_nothing_but_the_client_library() -> None:
    """`eos_mirror.client` imports neither Spark nor any other library of the mirror."""
    strangers = ("pyspark", "pydantic", "opentelemetry", "tenacity", "py4j")
    asking = f"import eos_mirror.client, sys; print(*(set({strangers}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", asking], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
