"""What transactions wait for on a real coordinator, and what waiting costs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from confluent_kafka import Consumer

from eos_mirror.core.records import DecodedRun, Position, TopicPartition
from eos_mirror.errors import RestartTask
from eos_mirror.kafka.marker_pause import MarkerPause
from eos_mirror.kafka.transactional_producer import KafkaProducer
from eos_mirror.ports import ShadowCommit
from eos_mirror.testing import KafkaCluster
from eos_mirror.testing.faults import Action, Api, Fault
from eos_mirror.testing.proxy import fault_proxies

pytestmark = pytest.mark.brokers

TRANSACTIONS, WARM_UP = 120, 40
PAUSE_S, SINCE_COMMIT_S = 0.3, 0.1
"""A pause that is visible on a busy machine, and how long before we measure it may begin."""
BUDGET = timedelta(seconds=30)
REMOTE = TopicPartition("copies", 0)


@pytest.fixture(scope="module")
def proxied(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """One broker behind a proxy, which counts requests."""
    with KafkaCluster(name="proxied", proxied=True) as cluster:
        cluster.create_topic(REMOTE.topic, 1)
        cluster.create_topic("map", 1)
        yield cluster


BATCH, BATCHES = 200, 4
"""Records of 1 KB per batch, and the number of full batches; half a batch follows."""
ANSWERED_AFTER = timedelta(milliseconds=200)
IDLE = 0.5
"""Share of a core: far above what waiting takes, far below what a busy loop takes."""


def a_run(first: int, *, count: int = 1, value: bytes = b"value") -> DecodedRun:
    """Return records of one partition."""
    return DecodedRun(
        partition=TopicPartition("originals", 0),
        offsets=list(range(first, first + count)),
        timestamps=[1_700_000_000_000] * count,
        keys=[b"key"] * count,
        values=[value] * count,
        headers=[None] * count,
        leader_epoch=None,
        size_bytes=len(value) * count,
    )


@contextmanager
def a_producer(cluster: KafkaCluster, name: str, **config: object) -> Iterator[KafkaProducer]:
    """Open one incarnation; in the names of `config`, underscores stand for dots."""
    servers = {"bootstrap.servers": cluster.proxied_bootstrap, "log_level": 3}
    more = {key.replace("_", "."): value for key, value in config.items()}
    group = Consumer({**servers, "group.id": "shadow"})
    producer = KafkaProducer(
        {**servers, "acks": "all", "retry.backoff.ms": 5, **more},
        name,
        group=group.consumer_group_metadata(),
    )
    yield producer
    producer.close()
    group.close()


def test_short_transactions_are_seldom_refused_while_markers_are_written(
    proxied: KafkaCluster,
) -> None:
    """Few short transactions are refused: a refusal costs a request, and 20 ms for records."""
    with (
        fault_proxies(proxied.proxy_ports) as proxies,
        a_producer(proxied, "short", linger_ms=0) as producer,
    ):
        asked = 0
        for number in range(TRANSACTIONS):
            if number == WARM_UP:
                asked = proxies[1].seen(Api.ADD_PARTITIONS_TO_TXN)
            producer.begin()
            producer.send(a_run(number), REMOTE)
            producer.flush(within=BUDGET)
            commit = ShadowCommit(position=Position(number + 1), metadata="")
            producer.commit({REMOTE: commit}, within=BUDGET)
        asked = proxies[1].seen(Api.ADD_PARTITIONS_TO_TXN) - asked
    refused = asked - (TRANSACTIONS - WARM_UP)
    assert refused <= (TRANSACTIONS - WARM_UP) // 4


def test_behind_a_short_transaction_the_next_begins_with_the_pause(
    proxied: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`begin` waits for the pause, so that records that arrive in it join the transaction."""
    monkeypatch.setattr(MarkerPause, "PERIOD_S", PAUSE_S)
    monkeypatch.setattr(
        MarkerPause, "REFUSED_S", BUDGET.total_seconds()
    )  # short on a busy machine, too
    with (
        fault_proxies(proxied.proxy_ports),
        a_producer(proxied, "rested", linger_ms=0) as producer,
    ):
        since = time.monotonic()
        commit(producer, fill(producer, until=lambda _: True))
        producer.begin()
        assert time.monotonic() - since >= PAUSE_S


def test_records_behind_a_long_transaction_wait_for_its_markers(
    proxied: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records wait for the markers: earlier, they are refused for 20 ms and go in one burst."""
    monkeypatch.setattr(MarkerPause, "AFTER_LONG_S", PAUSE_S)
    with (
        fault_proxies(proxied.proxy_ports) as proxies,
        a_producer(proxied, "filled", linger_ms=0) as producer,
    ):

        def asked() -> int:
            return proxies[1].seen(Api.ADD_PARTITIONS_TO_TXN)

        def after_a_long_one() -> float:
            long_s = PAUSE_S + 2 * MarkerPause.REFUSED_S  # also after another one
            commit(producer, fill(producer, until=lambda at: time.monotonic() > at + long_s))
            return time.monotonic()

        rest_from = after_a_long_one()
        before = asked()
        sent = fill(producer, until=lambda _: asked() > before)
        assert time.monotonic() - rest_from > PAUSE_S - SINCE_COMMIT_S, "they were sent immediately"
        commit(producer, sent)

        rest_from = after_a_long_one()
        commit(producer, fill(producer, until=lambda _: True))
        assert time.monotonic() - rest_from > PAUSE_S - SINCE_COMMIT_S, "a flush did not wait"


def fill(producer: KafkaProducer, *, until: Callable[[float], bool]) -> int:
    """Begin, and send records until `until`, given the start time, is true; return their number."""
    producer.begin()
    sent, began_at = 0, time.monotonic()
    while not sent or not until(began_at):
        producer.send(a_run(sent), REMOTE)
        sent += 1
        assert time.monotonic() < began_at + BUDGET.total_seconds()
    return sent


def commit(producer: KafkaProducer, sent: int) -> None:
    """Flush and commit: everything that was sent must arrive, also what was held back."""
    assert producer.flush(within=BUDGET)[REMOTE].count == sent
    producer.commit({REMOTE: ShadowCommit(position=Position(sent), metadata="")}, within=BUDGET)


def test_a_flush_leaves_the_core_to_others_while_batches_are_under_way(
    proxied: KafkaCluster,
) -> None:
    """A flush does not make the client busy-poll for records that it cannot send yet."""
    with (
        fault_proxies(proxied.proxy_ports) as proxies,
        a_producer(proxied, "long", linger_ms=1000, batch_size=BATCH * 1_000) as producer,
    ):
        slow = Fault(Api.PRODUCE, Action.DELAY_RESPONSE, delay=ANSWERED_AFTER, times=None)
        proxies[1].inject(slow)
        producer.begin()
        for number in range(2 * BATCHES + 1):
            run = a_run(number * BATCH // 2, count=BATCH // 2, value=b"v" * 1_000)
            producer.send(run, REMOTE)
        began, spent_s = time.monotonic(), time.process_time()
        delivered = producer.flush(within=BUDGET)
        lasted_s, spent_s = time.monotonic() - began, time.process_time() - spent_s
    assert delivered[REMOTE].count == (2 * BATCHES + 1) * BATCH // 2
    assert slow.hits >= BATCHES, "nothing was waited for; the test proves nothing"
    assert spent_s < IDLE * lasted_s


def test_who_was_fenced_hears_of_it_in_our_words(proxied: KafkaCluster) -> None:
    """A fenced producer gets a RestartTask, even while it waits for full batches before a flush."""
    with (
        fault_proxies(proxied.proxy_ports),
        a_producer(proxied, "fenced", linger_ms=1000, batch_size=BATCH * 1_000) as old,
    ):
        old.begin()
        old.send(a_run(0), REMOTE)
        old.flush(within=BUDGET)
        with a_producer(proxied, "fenced"), pytest.raises(RestartTask):
            _send_batches(old)


def _send_batches(producer: KafkaProducer) -> None:
    for number in range(BATCHES):
        producer.send(a_run(number * BATCH, count=BATCH, value=b"v" * 1_000), REMOTE)
    producer.flush(within=BUDGET)
