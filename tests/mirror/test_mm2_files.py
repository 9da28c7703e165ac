"""
Compatibility with a real MirrorMaker 2: its configuration files start here unchanged, its records
are read here, and Java reads the records that are written here.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.client import MirrorClient
from eos_mirror.core.flow import Flow
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import set_group_offsets
from eos_mirror.kafka.offset_syncs import FollowedSyncs
from eos_mirror.ports import GroupOffset
from eos_mirror.testing import KafkaCluster, cluster, wait_until
from eos_mirror.testing.checker import compare_topics
from tests.mirror.java_mm2 import COPIES_WITHIN, running_mm2
from tests.mirror.remote_clusters import Questions
from tests.mirror.toolbox import FlowView, mirror, produce

pytestmark = [pytest.mark.brokers, pytest.mark.long]

DISTRIBUTION = """\
# any number of aliases
clusters = A, B

A.bootstrap.servers = A_host1:9092, A_host2:9092, A_host3:9092
B.bootstrap.servers = B_host1:9092, B_host2:9092, B_host3:9092

# flows, each with its topics
A->B.enabled = true
A->B.topics = .*

B->A.enabled = true
B->A.topics = .*

replication.factor=1

# internal topics: more than one replica outside of a test
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1

offset.storage.replication.factor=1
status.storage.replication.factor=1
config.storage.replication.factor=1
"""
"""What `config/connect-mirror-maker.properties` of Kafka sets, in our words."""

DOCUMENTATION = """\
clusters = us-west, us-east
us-west.bootstrap.servers = broker1-west:9092,broker2-west:9092
us-east.bootstrap.servers = broker3-east:9092,broker4-east:9092

us-west->us-east.enabled = true
us-west->us-east.topics = foo.*, bar-.*
us-west->us-east.groups = readers.*
us-west->us-east.sync.group.offsets.enabled = true
us-east->us-west.enabled = false

us-west.consumer.isolation.level = read_committed
us-east.exactly.once.source.support = enabled
dedicated.mode.enable.internal.rest = true
listeners = http://localhost:8080
sync.topic.acls.enabled = false
replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
"""
"""Keys that Kafka's page on geo-replication shows, and one replica for one broker."""

RECORDS, PARTITIONS = 1_000, 2
GROUP, STOOD_AT = "readers", 300
HEARD_WITHIN = timedelta(seconds=30)
"""Heartbeats begin after the start."""

CHECKPOINTED_WITHIN = timedelta(seconds=120)
"""The first round may come before the records, and the next one is a minute later."""


@pytest.fixture(scope="module")
def pair(own_brokers: None) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:  # noqa: ARG001
    """Two clusters without other topics, because `.*` mirrors everything."""
    with ExitStack() as stack:
        clusters = KafkaCluster(name="west"), KafkaCluster(name="east")
        cluster.start_clusters(*clusters)
        for one in clusters:
            stack.callback(one.stop)
        yield clusters


@pytest.mark.parametrize(
    ("text", "flow", "topic"),
    [
        pytest.param(DISTRIBUTION, Flow("A", "B"), "orders", id="distribution"),
        pytest.param(DOCUMENTATION, Flow("us-west", "us-east"), "foobar", id="documentation"),
    ],
)
def test_a_file_of_mirrormaker_2_starts_as_it_is(
    pair: tuple[KafkaCluster, KafkaCluster], tmp_path: Path, text: str, flow: Flow, topic: str
) -> None:
    """It runs on Spark, the default; records, names and internal topics are as expected."""
    source, target = pair
    for alias, one in ((flow.source, source), (flow.target, target)):
        text = re.sub(
            rf"{alias}\.bootstrap\.servers = .*",
            f"{alias}.bootstrap.servers = {one.bootstrap}",
            text,
        )
    file = tmp_path / "mm2.properties"
    file.write_text(text)
    source.create_topic(topic, PARTITIONS)
    produce(source, topic, RECORDS, partitions=PARTITIONS)
    commit(source, topic)
    remote = f"{flow.source}.{topic}"
    with mirror(file) as running:
        running.wait_for("ready", within_s=120)
        view = FlowView(flow, source, target)
        view.wait_caught_up(topic, remote, partitions=PARTITIONS)
        wait_until(
            lambda: (
                sum(one["checkpoints"] for one in running.found("checkpoints.emitted"))
                >= PARTITIONS
            ),
            within=CHECKPOINTED_WITHIN,
            what="a checkpoint of each partition",
        )
        wait_until(
            lambda: "heartbeats" in target.admin().list_topics(timeout=10).topics,
            within=HEARD_WITHIN,
            what="a heartbeat",
        )
        assert running.stop() == 0, running.errors
    compared = compare_topics(
        source.client_config(), topic, target.client_config(), remote, PARTITIONS
    )
    assert compared.exact, compared
    assert compared.matched == RECORDS
    asked = Questions(aliases=("A", "B", "us-west"), translated=[flow.source], groups=[GROUP])
    answers = asked.to_us(target, {})
    assert answers == asked.to_java(target, {})
    wanted = ", ".join(f"{remote}-{p}={STOOD_AT}/" for p in range(PARTITIONS))
    assert answers[-1] == f"offsets {flow.source} {GROUP}: {{{wanted}}}"


FAST = """\
clusters = X, Y
X.bootstrap.servers = {source}
Y.bootstrap.servers = {target}
X->Y.enabled = true
X->Y.topics = payments
emit.checkpoints.interval.seconds = 1
refresh.groups.interval.seconds = 1
refresh.topics.interval.seconds = 1
offset.flush.interval.ms = 1000
offset.lag.max = 0
offset.storage.partitions = 1
status.storage.partitions = 1
"""


def test_what_a_real_mirrormaker_2_wrote_is_read(
    pair: tuple[KafkaCluster, KafkaCluster], tmp_path: Path
) -> None:
    """
    Its heartbeats, checkpoints and offset syncs are all read, with the same answers as Java's.

    The group is at the end: MirrorMaker 2 never translates an offset older than the newest sync
    when its checkpoint task starts, and that may be after the last record.
    """
    source, target = pair
    source.create_topic("payments", PARTITIONS)
    produce(source, "payments", RECORDS, partitions=PARTITIONS)
    commit(source, "payments", at=RECORDS // PARTITIONS)
    file = tmp_path / "mm2.properties"
    text = FAST.format(source=source.bootstrap, target=target.bootstrap)
    _, factors, others = DISTRIBUTION.partition("replication.factor=1")
    file.write_text(text + factors + others)
    asked = Questions(aliases=["X"], translated=["X"], groups=[GROUP])
    log = tmp_path / "log"
    with running_mm2(file, log) as java:
        client = MirrorClient(target.client_config())
        wait_until(
            lambda: (
                client.replication_hops("X") == 1 and len(checkpoints(client, target)) == PARTITIONS
            ),
            within=COPIES_WITHIN,
            what="heartbeats and checkpoints of MirrorMaker 2",
        )
        assert java.poll() is None, log.read_text()
    answers = asked.to_us(target, {})
    assert answers == asked.to_java(target, {})
    assert "hops X: 1" in answers
    assert client.skipped == 0
    syncs = FollowedSyncs(source.client_config(), "mm2-offset-syncs.Y.internal", group=GROUP)
    partitions = [TopicPartition("payments", p) for p in range(PARTITIONS)]
    known = syncs.read({partition: partition for partition in partitions})
    assert (set(known), syncs.unreadable) == (set(partitions), 0)


def checkpoints(client: MirrorClient, target: KafkaCluster) -> Mapping[TopicPartition, object]:
    """Return the checkpoints of the group; none while their topic does not exist."""
    if "X.checkpoints.internal" not in target.admin().list_topics(timeout=10).topics:
        return {}
    return client.remote_consumer_offsets(GROUP, "X", timeout=timedelta(seconds=20))


def commit(cluster: KafkaCluster, topic: str, at: int = STOOD_AT) -> None:
    """Commit this offset of the group on every partition."""
    partitions = {
        TopicPartition(topic, p): GroupOffset(position=Position(at, None), metadata="")
        for p in range(PARTITIONS)
    }
    set_group_offsets(cluster.admin(), GROUP, partitions, side=Side.SOURCE)
