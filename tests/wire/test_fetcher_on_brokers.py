"""The fetcher on three real brokers: their sessions, a dead one, and a topic created again."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from eos_mirror.testing import KafkaCluster
from eos_mirror.testing.waiting import wait_until
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.fetcher import Fetcher
from eos_mirror.wire.security import PLAINTEXT
from tests.wire.reader import WITHIN, Reader
from tests.wire.real_topic import SETTINGS, Topic

pytestmark = [pytest.mark.brokers, pytest.mark.long]

QUIET = timedelta(seconds=1)


@pytest.fixture(scope="module")
def three(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Three brokers, of which one may die."""
    with KafkaCluster(3, name="three", controllers="separate") as cluster:
        yield cluster


@contextmanager
def reader_of(cluster: KafkaCluster) -> Iterator[Reader]:
    """Yield a reader with connections of its own."""
    fetcher = Fetcher(Cluster(cluster.bootstrap, PLAINTEXT, client_id="test"), SETTINGS)
    try:
        yield Reader(fetcher)
    finally:
        fetcher.close()


@pytest.mark.parametrize("seed", range(3))
def test_partitions_that_start_and_stop_are_read_densely(
    three: KafkaCluster, ns: str, seed: int
) -> None:
    """With the sessions of real brokers: from each start on, every record comes once, in order."""
    chosen, topic = random.Random(seed), Topic(three, ns)
    with reader_of(three) as reader:
        for _ in range(150):
            some = chosen.sample(topic.partitions, chosen.randrange(1, 4))
            what = chosen.randrange(3)
            if what == 0:
                at = {p: chosen.choice((0, reader.at.get(p, 0))) for p in some}
                reader.start({p: min(offset, topic.ends[p]) for p, offset in at.items()})
            elif what == 1:
                reader.stop(some)
            else:
                for p in some:
                    topic.produce(p, chosen.randrange(1, 50))
                topic.flush()
            for _ in range(chosen.randrange(4)):
                reader.poll()
        reader.start({p: 0 for p in topic.partitions if p not in reader.at})
        reader.read_to(topic.ends)
        assert not reader.faults


def test_the_end_is_reported_again_after_a_start(three: KafkaCluster, ns: str) -> None:
    """A real broker has nothing new to say of a partition that starts again at its end."""
    topic = Topic(three, ns)
    for p in topic.partitions:
        topic.produce(p, 10)
    topic.flush()
    with reader_of(three) as reader:
        reader.start(dict.fromkeys(topic.partitions, 0))
        reader.read_to(topic.ends)
        for _ in range(3):
            reader.start(topic.ends)
            reader.read_to(topic.ends)


def test_reading_resumes_after_a_broker_died(three: KafkaCluster, ns: str) -> None:
    """Killed or shut down: its partitions are read from their new leaders, without a fault."""
    topic = Topic(three, ns)
    with reader_of(three) as reader:
        reader.start(dict.fromkeys(topic.partitions, 0))
        for node, end in ((1, three.kill), (2, three.terminate), (3, three.kill)):
            for p in topic.partitions:
                topic.produce(p, 200)
            reader.poll()
            end(node)
            for p in topic.partitions:
                topic.produce(p, 200)
            topic.flush()
            reader.read_to(topic.ends)
            three.start_node(node)
            three.wait_isr(ns)
        assert not reader.faults


def test_a_frozen_broker_does_not_hold_up_the_others(three: KafkaCluster, ns: str) -> None:
    """While one broker does not answer, the partitions of the others are read."""
    topic = Topic(three, ns)
    with reader_of(three) as reader:
        reader.start(dict.fromkeys(topic.partitions, 0))
        reader.read_to(topic.ends)
        frozen = [p for p in topic.partitions if three.leader_of(ns, p.partition) == 1]
        assert frozen
        three.pause(1)
        try:
            others = {p: 0 for p in topic.partitions if p not in frozen}
            for p in topic.partitions:
                topic.produce(p, 100)
            topic.flush()
            reader.read_to({p: topic.ends[p] for p in others})
        finally:
            three.resume(1)
        reader.read_to(topic.ends)
        three.wait_isr(ns)
        assert not reader.faults


def test_a_topic_that_was_created_again_is_never_read(three: KafkaCluster, ns: str) -> None:
    """The new topic is longer than the old one was, and has its name: not a record is read."""
    topic = Topic(three, ns)
    for p in topic.partitions:
        topic.produce(p, 10)
    topic.flush()
    with reader_of(three) as reader:
        reader.start(dict.fromkeys(topic.partitions, 0))
        reader.read_to(topic.ends)
        three.admin().delete_topics([ns])[ns].result(30)
        wait_until(lambda: three.leader_of(ns) is None, within=WITHIN, what="the deletion")
        again = Topic(three, ns)
        for p in again.partitions:
            again.produce(p, 50)
        again.flush()
        until = time.monotonic() + QUIET.total_seconds()
        while time.monotonic() < until:
            reader.poll()
        assert reader.at == topic.ends
