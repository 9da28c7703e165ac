"""The source on a real broker, where fetching is slower than reading."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

import pytest
from confluent_kafka import Producer

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.kafka.source import MUCH_RECORDS, KafkaSource
from eos_mirror.ports import Polled
from eos_mirror.settings.clients import MEMBER
from eos_mirror.testing import KafkaCluster, wait_until
from tests.engine.bench import Listener

pytestmark = pytest.mark.brokers

PARTITION = TopicPartition("long", 0)
COUNT, BATCH = 10 * MUCH_RECORDS, 50
SMALL_FETCHES = {
    "fetch.message.max.bytes": "1000",
    "queued.min.messages": "1",
    "fetch.queue.backoff.ms": "5",
}
NO_WAIT, WITHIN_S = timedelta(0), 30.0


@pytest.fixture(scope="module")
def cluster(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """One broker and a log that takes many fetches."""
    with KafkaCluster(name="fetched") as cluster:
        cluster.create_topic(PARTITION.topic, 1)
        producer = Producer({**cluster.client_config(), "batch.num.messages": BATCH})
        for number in range(COUNT):
            producer.produce(PARTITION.topic, b"%d" % number, partition=0)
        assert producer.flush(10) == 0
        yield cluster


def a_source(cluster: KafkaCluster, slot: int) -> KafkaSource:
    """Return a source that reads from the start."""
    listener = Listener()
    group = {"group.id": f"readers-{slot}", "group.instance.id": str(slot)}
    source = KafkaSource({**cluster.client_config(), **MEMBER, **SMALL_FETCHES, **group}, listener)
    source.subscribe([PARTITION.topic])

    def granted() -> bool:
        source.poll(wait=timedelta(milliseconds=50))
        return PARTITION in listener.granted

    wait_until(granted, within=timedelta(seconds=WITHIN_S), what="grant")
    source.assign({PARTITION: Position(0)})
    return source


def polls(source: KafkaSource) -> Iterator[Polled]:
    """Yield one poll after the other, for a limited time."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        yield source.poll(wait=NO_WAIT)
    pytest.fail(f"nothing more within {WITHIN_S} s")


def test_between_two_fetches_more_waits_but_not_at_the_end(cluster: KafkaCluster) -> None:
    """An empty poll between two fetches is no reason to commit; one at the end of the log is."""
    source = a_source(cluster, 0)
    next_offset, said = 0, {"behind": 0, "near the end": 0}
    for polled in polls(source):
        if polled.runs:
            next_offset = polled.runs[-1].next_offset
            assert not polled.more_pending
        elif next_offset:
            where = "behind" if COUNT - next_offset >= MUCH_RECORDS else "near the end"
            said[where] += polled.more_pending
        if PARTITION in polled.ends:
            break
    source.close()

    assert next_offset == COUNT
    assert said["behind"] > 0
    assert said["near the end"] == 0


def test_nothing_waits_in_a_partition_that_is_not_read_any_more(cluster: KafkaCluster) -> None:
    """A partition that was unassigned far from its end has no pending records."""
    source = a_source(cluster, 1)
    next(polled for polled in polls(source) if polled.more_pending)
    source.unassign([PARTITION])

    assert not source.poll(wait=NO_WAIT).more_pending
    source.close()


class StrictListener(Listener):
    """Also remembers what was lost."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[TopicPartition] = []

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """See the port."""
        self.lost.extend(partitions)
        self.granted.difference_update(partitions)


def a_member(cluster: KafkaCluster, group: str) -> tuple[KafkaSource, StrictListener]:
    """Return a static member of a group, and its listener."""
    listener = StrictListener()
    config = {
        "group.id": group,
        "group.instance.id": "0",
        "topic.metadata.refresh.interval.ms": 500,
    }
    return KafkaSource({**cluster.client_config(), **MEMBER, **config}, listener), listener


def poll_until(source: KafkaSource, condition: Callable[[], bool]) -> None:
    """Poll until the condition holds: rebalances happen inside of polls."""

    def is_so() -> bool:
        source.poll(wait=timedelta(milliseconds=50))
        return condition()

    wait_until(is_so, within=timedelta(seconds=WITHIN_S), what="the assignment")


def test_a_topic_that_is_not_wanted_any_more_is_revoked_and_not_lost(cluster: KafkaCluster) -> None:
    """Also if another topic is subscribed to instead. A loss would end the task."""
    names = [f"{name}-instead" for name in ("kept", "dropped", "added")]
    for name in names:
        cluster.create_topic(name, 1)
    kept, dropped, added = (TopicPartition(name, 0) for name in names)
    source, listener = a_member(cluster, "instead")

    source.subscribe([kept.topic, dropped.topic])
    poll_until(source, lambda: listener.granted == {kept, dropped})
    source.assign({kept: Position(0), dropped: Position(0)})
    source.subscribe([kept.topic, added.topic])
    # the added one may come later: a client assigns only topics that its metadata has, and the
    # driver lets the tasks rejoin when a partition has no owner
    poll_until(source, lambda: dropped not in listener.granted and kept in listener.granted)
    source.close()

    assert not listener.lost
    assert dropped in listener.revoked


def test_a_topic_that_is_deleted_is_revoked_and_not_lost(cluster: KafkaCluster) -> None:
    """The member stays. A loss would end its task, and with it all other topics for a moment."""
    kept, gone = (TopicPartition(f"{name}-deleted", 0) for name in ("kept", "gone"))
    for one in (kept, gone):
        cluster.create_topic(one.topic, 1)
    source, listener = a_member(cluster, "deleted")
    source.subscribe([kept.topic, gone.topic])
    poll_until(source, lambda: listener.granted == {kept, gone})
    source.assign({kept: Position(0), gone: Position(0)})

    cluster.admin().delete_topics([gone.topic])[gone.topic].result(30)
    poll_until(source, lambda: listener.granted == {kept})
    source.close()

    assert not listener.lost
    assert gone in listener.revoked
