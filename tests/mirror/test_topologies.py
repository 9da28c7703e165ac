"""MirrorMaker 2's topologies, each in one configuration: both ways, chain, fan-in, renamed."""

import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.core.flow import Flow
from eos_mirror.replication.provenance import HEADER
from eos_mirror.testing import wait_until
from eos_mirror.testing.checker import compare_topics, read_topic
from eos_mirror.testing.external import Cluster
from tests.mirror.command_line import ends, status
from tests.mirror.toolbox import FlowView, Mirror, mirror, produce, write_file

pytestmark = pytest.mark.brokers

PARTITIONS = 2
RECORDS = 2_000


@dataclass(frozen=True, slots=True)
class World:
    """
    Clusters by aliases that no other test has.

    Two aliases may be one cluster: the tests check which names are written where.
    """

    folder: Path
    name: str
    clusters: dict[str, Cluster]

    def alias(self, letter: str) -> str:
        """Return the alias of a cluster in this test."""
        return f"{letter}{self.name}"

    def flow(self, ways: str) -> Flow:
        """Return the flow of "A->B"."""
        source, _, target = ways.partition("->")
        return Flow(self.alias(source), self.alias(target))

    def file(self, *flows: str, **keys: object) -> Path:
        """Write the configuration. Keys have `_` for `.`; keys of one flow are given unchanged."""
        clusters = {self.alias(letter): cluster for letter, cluster in self.clusters.items()}
        return write_file(
            self.folder / "mm2.properties",
            clusters,
            [self.flow(ways) for ways in flows],
            {key.replace("_", "."): value for key, value in keys.items()},
        )

    def topic(self, letter: str, name: str) -> str:
        """Create a topic with records on a cluster."""
        topic = f"{name}-{self.name}"
        self.clusters[letter].create_topic(topic, PARTITIONS)
        produce(self.clusters[letter], topic, RECORDS, partitions=PARTITIONS)
        return topic

    def wait(self, ways: str, topic: str, remote: str) -> None:
        """Wait until a flow has caught up with a topic."""
        flow = self.flow(ways)
        view = FlowView(flow, self.clusters[ways[0]], self.clusters[ways[-1]])
        view.wait_caught_up(topic, remote, partitions=PARTITIONS)

    def assert_same(self, here: tuple[str, str], there: tuple[str, str]) -> None:
        """Assert that two topics, as (cluster, name), have the same records."""
        one, other = (self.clusters[letter] for letter in (here[0], there[0]))
        compared = compare_topics(
            one.client_config(), here[1], other.client_config(), there[1], PARTITIONS
        )
        assert compared.exact, f"{here} {there}: {compared}"
        assert compared.matched == RECORDS

    def topics(self, letter: str) -> set[str]:
        """Return the topics of this test on a cluster, without internal ones."""
        found = self.clusters[letter].admin().list_topics(timeout=10).topics
        return {t for t in found if self.name in t and not t.startswith("eos-mirror.")}


@pytest.fixture
def world(tmp_path: Path, source_cluster: Cluster, target_cluster: Cluster) -> World:
    """B is one cluster; A, C and D are names of the other."""
    clusters = {"A": source_cluster, "B": target_cluster, "C": source_cluster, "D": source_cluster}
    return World(tmp_path, uuid.uuid4().hex[:8], clusters)


@contextmanager
def running(config: Path) -> Iterator[Mirror]:
    """Run a mirror for the length of the block; it must stop with exit code 0."""
    with mirror(config) as process:
        process.wait_for("ready")
        yield process
        assert process.stop() == 0, process.errors


def test_two_clusters_mirror_each_other_and_nothing_goes_round(world: World) -> None:
    """In A<->B with a topic of one name on both, no copy is copied back."""
    mine = world.topic("A", "orders")
    world.topic("B", "orders")
    copy, back = f"{world.alias('A')}.{mine}", f"{world.alias('B')}.{mine}"
    with running(world.file("A->B", "B->A", topics=f".*{world.name}")) as process:
        world.wait("A->B", mine, copy)
        world.wait("B->A", mine, back)
        late = world.topic("A", "late")
        late_copy = f"{world.alias('A')}.{late}"
        process.wait_for("topic.created", topic=late_copy)
        world.wait("A->B", late, late_copy)
    world.assert_same(("A", mine), ("B", copy))
    world.assert_same(("B", mine), ("A", back))
    world.assert_same(("A", late), ("B", late_copy))
    assert world.topics("A") == {mine, back, late}
    assert world.topics("B") == {mine, copy, late_copy}


def test_a_chain_keeps_the_way_in_the_name(world: World) -> None:
    """In A->B->C, the name on C has both aliases."""
    topic = world.topic("A", "orders")
    copy = f"{world.alias('A')}.{topic}"
    far = f"{world.alias('B')}.{copy}"
    onward = f"{world.flow('B->C')}.topics"
    config = world.file("A->B", "B->C", topics=topic, **{onward: f".*{world.name}"})
    with running(config) as process:
        process.wait_for("topic.created", topic=far)
        world.wait("A->B", topic, copy)
        world.wait("B->C", copy, far)
    world.assert_same(("A", topic), ("B", copy))
    world.assert_same(("A", topic), ("C", far))


def test_two_clusters_flow_into_a_third(world: World) -> None:
    """In A->B<-C, each flow mirrors its own topic, and B has both copies."""
    one, other = world.topic("A", "orders"), world.topic("C", "payments")
    there = {f"{world.flow('A->B')}.topics": one, f"{world.flow('C->B')}.topics": other}
    copies = {"A": f"{world.alias('A')}.{one}", "C": f"{world.alias('C')}.{other}"}
    with running(world.file("A->B", "C->B", **there)):
        world.wait("A->B", one, copies["A"])
        world.wait("C->B", other, copies["C"])
    world.assert_same(("A", one), ("B", copies["A"]))
    world.assert_same(("C", other), ("B", copies["C"]))
    assert world.topics("B") == set(copies.values())


def test_of_two_flows_onto_a_new_topic_one_writes_it(world: World) -> None:
    """In A->B<-C without aliases in the names, the first flow continues; the other refuses it."""
    topic = f"orders-{world.name}"
    others = {letter: world.topic(letter, f"only-{letter}") for letter in "AC"}
    lists = {f"{world.flow(f'{letter}->B')}.topics": other for letter, other in others.items()}
    config = world.file(
        "A->B", "C->B", replication_policy_class="IdentityReplicationPolicy", **lists
    )
    with mirror(config) as process:
        process.wait_for("ready")
        assert world.topic("A", "orders") == topic
        text = config.read_text()
        for other in others.values():
            text = text.replace(f"topics = {other}", f"topics = {other}, {topic}")
        config.write_text(text)
        process.wait_for("config.reloaded", count=2)
        world.wait("A->B", topic, topic)
        refused = process.wait_for("topic.refused")
        flow, writer = world.flow("C->B"), world.flow("A->B")
        assert refused["topic"] == topic
        assert refused["reason"].startswith(f"{flow} {topic} to {topic}: {writer} writes it")
        assert process.stop() == 1, process.errors
    world.assert_same(("A", topic), ("B", topic))


def test_one_cluster_flows_into_two(world: World) -> None:
    """In A<-B->C, both copies are complete."""
    topic = world.topic("B", "orders")
    renaming = f"{world.flow('B->C')}.replication.policy.topics.map"
    renames = {renaming: f"(.*)-{world.name}:$1-{world.name}-copy"}
    config = world.file("B->A", "B->C", topics=topic, replication_policy_separator="_", **renames)
    copy, renamed = f"{world.alias('B')}_{topic}", f"{topic}-copy"
    with running(config):
        world.wait("B->A", topic, copy)
        world.wait("B->C", topic, renamed)
    world.assert_same(("B", topic), ("A", copy))
    world.assert_same(("B", topic), ("C", renamed))
    code, found, errors = ends("verify", str(config), str(world.flow("B->C")))
    assert code == 0, (found, errors)
    assert f"{topic} -> {renamed}: " in found, "it knows the source topic of the new name"


@pytest.mark.long
def test_names_that_go_round_are_refused_at_the_start_and_later(world: World) -> None:
    """
    In A<->B without aliases in the names, a topic of both flows is refused.

    MirrorMaker 2 would copy it indefinitely. A topic that only one of the flows has is mirrored.
    """
    topic = f"orders-{world.name}"
    one_way = world.topic("A", "oneway")
    there = {f"{world.flow('A->B')}.topics": f"{topic}, {one_way}"}
    identity = {"replication_policy_class": "IdentityReplicationPolicy", "topics": topic}
    config = world.file("A->B", "B->A", **identity, **there)
    with mirror(config) as process:
        process.wait_for("ready")
        world.topic("A", "orders")
        assert "come back to it by" in process.wait_for("topic.refused", topic=topic)["reason"]
        world.wait("A->B", one_way, one_way)
        assert process.stop() == 1, process.errors
    assert world.topics("B") == {one_way}

    with mirror(config, "--once") as process:
        assert process.wait() == 1, process.errors
    assert "come back to it by" in process.wait_for("topic.refused", topic=topic)["reason"]
    assert f"not mirrored: {world.flow('A->B')} {topic} to {topic}: its copies" in status(config)
    assert world.topics("B") == {one_way}
    world.assert_same(("A", one_way), ("B", one_way))


def test_records_that_note_where_they_have_been_do_not_come_back(world: World) -> None:
    """In A<->B with one name on both, at least once, each cluster has both halves once."""
    topic, aliases = f"orders-{world.name}", {letter: world.alias(letter) for letter in "AB"}
    for letter, start in (("A", 0), ("B", RECORDS)):
        world.clusters[letter].create_topic(topic, PARTITIONS)
        produce(world.clusters[letter], topic, RECORDS, partitions=PARTITIONS, start=start)
    config = world.file(
        *("A->B", "B->A"),
        replication_policy_class="IdentityReplicationPolicy",
        topics=topic,
        transaction_producer="false",
        provenance_headers_enabled="true",
    )
    views = {
        letter: FlowView(world.flow(ways), world.clusters[letter], world.clusters[ways[-1]])
        for letter, ways in (("A", "A->B"), ("B", "B->A"))
    }

    def all_is_read() -> bool:
        """Return whether each flow has read the records of both halves."""
        ends = {letter: view.ends(topic, PARTITIONS) for letter, view in views.items()}
        return all(
            sum(ends[letter].values()) >= 2 * RECORDS
            and view.source_positions(topic, PARTITIONS) == ends[letter]
            for letter, view in views.items()
        )

    with running(config):
        wait_until(all_is_read, within=timedelta(seconds=60), what="both halves on both")
    for letter, other in ("AB", "BA"):
        found = read_topic(world.clusters[letter].client_config(), topic, partitions=PARTITIONS)
        records = [record for partition in found for record in partition]
        assert sorted(record.value or b"" for record in records) == [
            b"value-%07d" % number for number in range(2 * RECORDS)
        ]
        passed = Counter(dict(record.headers).get(HEADER) for record in records)
        assert passed == {None: RECORDS, aliases[other].encode(): RECORDS}


def test_names_may_stay_as_they_are_one_way(world: World) -> None:
    """In A->B with the identity policy, the copy has the name of its source topic."""
    topic = world.topic("A", "orders")
    config = world.file("A->B", replication_policy_class="IdentityReplicationPolicy", topics=topic)
    with running(config):
        world.wait("A->B", topic, topic)
    world.assert_same(("A", topic), ("B", topic))
    assert world.topics("B") == {topic}
