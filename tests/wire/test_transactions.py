"""Transactions, and a coordinator whose answers are lost, late, doubled, malformed or errors."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.errors import (
    MirrorError,
    NotAuthorized,
    ProducerFenced,
    RefusedByTarget,
    RestartTask,
    TransactionLost,
)
from eos_mirror.ports import ShadowCommit
from eos_mirror.wire import lane as lane_module
from eos_mirror.wire import producer as producer_module
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    MESSAGE_TOO_LARGE,
    NOT_COORDINATOR,
    PRODUCER_FENCED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from eos_mirror.wire.lane import WireLane
from eos_mirror.wire.messages import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN_3,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    PRODUCE_9,
    TXN_OFFSET_COMMIT_3,
    Api,
)
from eos_mirror.wire.packing import Packing
from eos_mirror.wire.passing import NOTHING
from eos_mirror.wire.producer import WireProducer
from eos_mirror.wire.security import PLAINTEXT
from eos_mirror.wire.sending import ProducerSettings
from tests.wire import produce_broker as changes
from tests.wire.examples import plain_rows, run_of
from tests.wire.no_membership import NoMembership
from tests.wire.produce_broker import Change, ProduceBroker
from tests.wire.scripted_broker import Asked, Peer

COPIES = TopicPartition("copies", 0)
SHORT = timedelta(seconds=0.2)
LONG = timedelta(seconds=20)
OFFSETS = {COPIES: ShadowCommit(position=Position(3), metadata="")}

STEPS: dict[int, list[Api]] = {
    1: [
        INIT_PRODUCER_ID,
        ADD_PARTITIONS_TO_TXN,
        PRODUCE_9,
        ADD_OFFSETS_TO_TXN,
        TXN_OFFSET_COMMIT_3,
        END_TXN_3,
    ],
    2: [INIT_PRODUCER_ID, PRODUCE_9, TXN_OFFSET_COMMIT_3, END_TXN_3],
}
"""The requests of a transaction in each protocol, in their order."""

PLACES = [
    pytest.param(level, step, id=f"TV{level}-{step.name}")
    for level, steps in STEPS.items()
    for step in steps
]

OPEN_PLACES = [
    pytest.param(level, step, id=f"TV{level}-{step.name}")
    for level, steps in STEPS.items()
    for step in steps[1:]
]
"""All but the first request, after which there is an incarnation."""


@contextmanager
def target_of(level: int) -> Iterator[tuple[ProduceBroker, Cluster]]:
    """Yield a target with one of the transaction protocols."""
    target = ProduceBroker(level=level)
    target.add_topic("copies", 2)
    with target.broker:
        cluster = Cluster(target.broker.bootstrap, PLAINTEXT, client_id="test")
        try:
            yield target, cluster
        finally:
            cluster.close()


def a_producer(cluster: Cluster, within: timedelta = LONG) -> WireProducer:
    """Open an incarnation."""
    settings = ProducerSettings(
        answered_within_s=within.total_seconds(),
        transaction_timeout_ms=60_000,
        packing=Packing(),
    )
    return WireProducer(
        cluster, "id", group="shadow", settings=settings, limits=lambda _: NOTHING, written={}
    )


def transaction(producer: WireProducer, within: timedelta = LONG) -> None:
    """Run a transaction of one batch."""
    producer.begin()
    producer.send(run_of(plain_rows(3)), COPIES)
    delivered = producer.flush(within=within)
    assert delivered[COPIES].count == 3
    producer.commit(OFFSETS, within=within)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an id initialised quickly, or not at all."""
    monkeypatch.setattr(producer_module, "INIT_WITHIN_S", SHORT.total_seconds())
    monkeypatch.setattr(lane_module, "FENCE_WITHIN_S", 15 * SHORT.total_seconds())


@pytest.mark.parametrize("level", STEPS)
def test_a_transaction_sends_each_request_once(level: int) -> None:
    """Undisturbed, both protocols send exactly the requests that they consist of."""
    with target_of(level) as (target, cluster):
        producer = a_producer(cluster)
        for _ in range(3):
            transaction(producer)
        expected = {step.name: 3 for step in STEPS[level]} | {INIT_PRODUCER_ID.name: 1}
        assert target.counts() == expected
        assert target.epoch == changes.EPOCH + (3 if level == 2 else 0)


# ---------------------------------------------------------------------- no answer


@pytest.mark.parametrize("change", [changes.lost, changes.reset, changes.malformed])
@pytest.mark.usefixtures("impatient")
def test_an_id_is_initialised_once(change: Change) -> None:
    """Without an answer, an id is given up: it is never initialised a second time."""
    with target_of(2) as (target, cluster):
        target.change(INIT_PRODUCER_ID.key, change)
        with pytest.raises(RestartTask):
            a_producer(cluster, SHORT)
        assert target.counts() == {INIT_PRODUCER_ID.name: 1}


@pytest.mark.parametrize("change", [changes.lost, changes.reset, changes.malformed])
@pytest.mark.parametrize(("level", "step"), OPEN_PLACES)
def test_a_request_without_an_answer_ends_the_incarnation(
    level: int, step: Api, change: Change
) -> None:
    """The transaction is lost; nothing is sent again, and nothing can be committed any more."""
    with target_of(level) as (target, cluster):
        producer = a_producer(cluster, SHORT)
        target.change(step.key, change)
        with pytest.raises(TransactionLost):
            transaction(producer, SHORT)
        done = STEPS[level][: STEPS[level].index(step) + 1]
        assert target.counts() == Counter(one.name for one in done)
        assert_over(producer, target)


def assert_over(producer: WireProducer, target: ProduceBroker) -> None:
    """Assert that no further transaction of an incarnation sends any request."""
    before = target.counts()
    with pytest.raises(MirrorError):
        producer.commit(OFFSETS, within=SHORT)
    with pytest.raises(MirrorError):
        transaction(producer, SHORT)
    with pytest.raises(MirrorError):
        producer.commit(OFFSETS, within=SHORT)
    assert target.counts() == before


@pytest.mark.parametrize(("level", "step"), PLACES)
def test_a_doubled_answer_is_taken_once(level: int, step: Api) -> None:
    """The second one is dropped with its connection, or an error: never the next answer."""
    with target_of(level) as (target, cluster):
        target.change(step.key, changes.doubled)
        try:
            producer = a_producer(cluster)
            for _ in range(2):
                transaction(producer)
        except (RestartTask, TransactionLost):
            pass
        else:
            assert target.counts()[END_TXN_3.name] == 2
        written = target.written[COPIES]
        assert len(written.offsets) == 3 * target.counts()[PRODUCE_9.name]
        assert not target.sent_twice
        assert all(count <= 2 for count in target.counts().values())


@pytest.mark.parametrize(("level", "step"), OPEN_PLACES)
def test_a_late_answer_changes_nothing(level: int, step: Api) -> None:
    """What arrives after its deadline does not bring an incarnation back."""
    late: list[tuple[Peer, Asked, dict[str, Any]]] = []

    def hold(*all_of_it: Any) -> None:
        late.append(all_of_it)

    with target_of(level) as (target, cluster):
        producer = a_producer(cluster, SHORT)
        target.change(step.key, hold)
        with pytest.raises(TransactionLost):
            transaction(producer, SHORT)
        late[0][0].answer(*late[0][1:])
        assert_over(producer, target)


# ---------------------------------------------------------------------- errors


CODES = [
    (CONCURRENT_TRANSACTIONS, None),
    (INVALID_PRODUCER_EPOCH, ProducerFenced),
    (PRODUCER_FENCED, ProducerFenced),
    (INVALID_TXN_STATE, ProducerFenced),
    (TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NotAuthorized),
    (-1, (RestartTask, TransactionLost)),
]


@pytest.mark.parametrize(("code", "error"), CODES)
@pytest.mark.parametrize(("level", "step"), PLACES)
def test_an_error_is_raised_or_tried_again(
    level: int,
    step: Api,
    code: int,
    error: type[MirrorError] | tuple[type[MirrorError], ...] | None,
) -> None:
    """Only a transaction before that is not finished is waited for; all else ends everything."""
    with target_of(level) as (target, cluster):
        target.change(step.key, *[changes.coded(code)] * 2)
        if step is PRODUCE_9:
            target.changes.clear()
            target.written[COPIES].codes |= {0: code, 1: code}
        if error is None:
            transaction(a_producer(cluster))
            assert target.counts()[step.name] == 3
            assert sum(target.counts().values()) == len(STEPS[level]) + 2
            return
        with pytest.raises(error):
            transaction(a_producer(cluster))
        assert target.counts()[step.name] == 1
        assert not target.written[COPIES].offsets or step is not PRODUCE_9


@pytest.mark.parametrize("code", [COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR])
def test_a_coordinator_that_is_not_ready_is_asked_again(code: int) -> None:
    """Initialising an id waits for its coordinator, which may be another broker then."""
    with target_of(2) as (target, cluster):
        target.change(INIT_PRODUCER_ID.key, changes.coded(code))
        a_producer(cluster)
        assert len(target.broker.requests(INIT_PRODUCER_ID)) == 2
        assert len(target.broker.requests(FIND_COORDINATOR)) == 3


@pytest.mark.parametrize(
    ("level", "step"),
    [
        (1, ADD_PARTITIONS_TO_TXN),
        (1, ADD_OFFSETS_TO_TXN),
        (1, TXN_OFFSET_COMMIT_3),
        (2, TXN_OFFSET_COMMIT_3),
    ],
)
def test_a_part_of_a_transaction_follows_its_coordinator(level: int, step: Api) -> None:
    """What changes nothing when it is repeated is sent to the next coordinator."""
    with target_of(level) as (target, cluster):
        producer = a_producer(cluster)
        target.change(step.key, changes.coded(NOT_COORDINATOR))
        found = len(target.broker.requests(FIND_COORDINATOR))
        transaction(producer)
        assert target.counts()[step.name] == 2
        assert target.counts()[END_TXN_3.name] == 1
        assert len(target.broker.requests(FIND_COORDINATOR)) == found + 1


@pytest.mark.parametrize("code", [COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR])
@pytest.mark.parametrize("level", STEPS)
def test_a_commit_is_not_repeated_after_a_change_of_coordinators(level: int, code: int) -> None:
    """These answers do not say that the decision is not in the log: the transaction is lost."""
    with target_of(level) as (target, cluster):
        producer = a_producer(cluster)
        target.change(END_TXN_3.key, changes.coded(code))
        with pytest.raises(TransactionLost):
            transaction(producer)
        assert target.counts()[END_TXN_3.name] == 1
        assert_over(producer, target)


@pytest.mark.parametrize("code", [GROUP_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION])
def test_refused_offsets_are_never_committed_without(code: int) -> None:
    """If any shadow offset is refused, no commit is sent."""

    def second(_: Peer, __: Asked, answer: dict[str, Any]) -> dict[str, Any]:
        one = answer["topics"][0]["partitions"][-1]
        one["error_code"] = code
        return answer

    with target_of(2) as (target, cluster):
        producer = a_producer(cluster)
        target.change(TXN_OFFSET_COMMIT_3.key, second)
        producer.begin()
        other = TopicPartition("copies", 1)
        with pytest.raises(MirrorError):
            producer.commit({**OFFSETS, other: OFFSETS[COPIES]}, within=LONG)
        assert not target.counts()[END_TXN_3.name]
        assert_over(producer, target)


@pytest.mark.parametrize(
    ("level", "step"), [(1, ADD_PARTITIONS_TO_TXN), (1, TXN_OFFSET_COMMIT_3), (2, PRODUCE_9),
                        (2, TXN_OFFSET_COMMIT_3)],
)  # fmt: skip
def test_an_answer_that_leaves_out_a_partition_is_no_success(level: int, step: Api) -> None:
    """Data without its shadow offset, or outside of the transaction, is never committed."""
    with target_of(level) as (target, cluster):
        producer = a_producer(cluster)
        target.change(step.key, changes.without_partitions)
        with pytest.raises(TransactionLost):
            transaction(producer)
        assert not target.counts()[END_TXN_3.name]
        assert_over(producer, target)


def test_a_commit_without_time_left_is_not_sent() -> None:
    """Records and offsets that took the whole budget are not committed: the outcome is known."""
    with target_of(2) as (target, cluster):
        producer = a_producer(cluster)
        producer.begin()
        producer.send(run_of(plain_rows(3)), COPIES)
        producer.flush(within=LONG)
        with pytest.raises(TransactionLost, match="no time is left"):
            producer.commit(OFFSETS, within=timedelta(seconds=-1))
        assert target.counts() == {INIT_PRODUCER_ID.name: 1, PRODUCE_9.name: 1}


@pytest.mark.parametrize("level", STEPS)
def test_a_refused_batch_spoils_the_incarnation(level: int) -> None:
    """After a refusal nothing is committed, not even an empty or a next transaction."""
    with target_of(level) as (target, cluster):
        producer = a_producer(cluster)
        target.written[COPIES].codes[0] = MESSAGE_TOO_LARGE
        with pytest.raises(RefusedByTarget) as caught:
            transaction(producer)
        assert caught.value.refused[COPIES].first == 0
        assert_over(producer, target)


# ---------------------------------------------------------------------- fences


def a_lane(target: ProduceBroker) -> WireLane:
    """Return a lane to a target."""
    config = {"bootstrap.servers": target.broker.bootstrap}
    return WireLane(
        Flow("A", "B"),
        NoMembership(),
        consumer_config=config,
        producer_config=config,
        plain_producer_config=config,
    )


@pytest.mark.parametrize("change", [changes.lost, changes.reset, changes.malformed, None])
@pytest.mark.usefixtures("impatient")
def test_an_id_counts_as_fenced_only_after_its_own_answer(change: Change | None) -> None:
    """One id that is being decided, or gives no answer, is not fenced; the others are."""

    def only_one(peer: Peer, asked: Asked, answer: dict[str, Any]) -> dict[str, Any] | None:
        if asked.fields["transactional_id"] != "stuck":
            return answer
        if change is None:
            return changes.coded(CONCURRENT_TRANSACTIONS)(peer, asked, answer)
        return change(peer, asked, answer)

    with target_of(2) as (target, _):
        target.change(INIT_PRODUCER_ID.key, *[only_one] * 1_000)
        lane = a_lane(target)
        assert lane.fence(["a", "stuck", "b", "c"]) == {"a", "b", "c"}
        asked = [one.fields["transactional_id"] for one in target.broker.requests(INIT_PRODUCER_ID)]
        assert [asked.count(one) for one in "abc"] == [1, 1, 1]
        assert change is None or asked.count("stuck") == 1
