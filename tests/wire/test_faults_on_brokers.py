"""Transactions through the fault proxy: real brokers, and answers that are lost, late or cut."""

import random
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta

import pytest

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.errors import RestartTask, TransactionLost
from eos_mirror.ports import ShadowCommit, ShadowOffset
from eos_mirror.testing import KafkaCluster
from eos_mirror.testing.faults import Action, Api, Fault
from eos_mirror.testing.proxy import FaultProxy, fault_proxies
from eos_mirror.testing.releases import chosen_release
from eos_mirror.testing.waiting import wait_until
from eos_mirror.wire import producer as producer_module
from eos_mirror.wire.lane import WireLane
from eos_mirror.wire.producer import WireProducer
from tests.engine.wire_bench import WireTargetBench
from tests.wire.examples import NOW_MS, Row, run_of
from tests.wire.no_membership import NoMembership

pytestmark = [pytest.mark.brokers, pytest.mark.long]

WITHIN = timedelta(seconds=60)
BUDGET = timedelta(seconds=5)
ANSWERED_MS = 400
"""Deadline of a request: short, but long for a broker of this machine."""

RECORDS = 3
"""Of each transaction and partition."""

STEPS: Mapping[int, list[Api]] = {
    1: [
        Api.INIT_PRODUCER_ID,
        Api.ADD_PARTITIONS_TO_TXN,
        Api.PRODUCE,
        Api.ADD_OFFSETS_TO_TXN,
        Api.TXN_OFFSET_COMMIT,
        Api.END_TXN,
    ],
    2: [Api.INIT_PRODUCER_ID, Api.PRODUCE, Api.TXN_OFFSET_COMMIT, Api.END_TXN],
}
ACTIONS = [
    Action.DROP_RESPONSE,
    Action.DELAY_RESPONSE,
    Action.CUT_AFTER_REQUEST,
    Action.CUT_BEFORE_RESPONSE,
    Action.HOLD_REQUEST,
    Action.STEAL_REQUEST,
]


@pytest.fixture(scope="module", params=[2, 1], ids=["TV2", "TV1"])
def protocol(request: pytest.FixtureRequest) -> int:
    """One of the transaction protocols that brokers of the chosen release speak."""
    chosen: int = request.param
    if chosen not in chosen_release().protocols:
        pytest.skip(f"{chosen_release()} does not have this protocol")
    return chosen


@pytest.fixture(scope="module")
def proxied(own_brokers: None, protocol: int) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """One broker behind a proxy, with this transaction protocol."""
    features = chosen_release().features_for(protocol)
    with KafkaCluster(name=f"faults-{protocol}", proxied=True, features=features) as cluster:
        yield cluster


class Copies:
    """
    Mirrors numbers to two partitions, and starts again after every error, as a task does.

    Attributes:
        failures: The errors, in order.
    """

    def __init__(self, cluster: KafkaCluster) -> None:
        self._bench = WireTargetBench(cluster, Flow("s", f"t{uuid.uuid4().hex[:8]}"))
        topic = self._bench.new_topic(2)
        self.partitions = [TopicPartition(topic, number) for number in range(2)]
        config = {
            "bootstrap.servers": cluster.proxied_bootstrap,
            "socket.timeout.ms": str(ANSWERED_MS),
        }
        self._lane = WireLane(
            self._bench.flow,
            NoMembership(),
            consumer_config=config,
            producer_config=config,
            plain_producer_config=config,
        )
        self._target = self._bench.target()
        self._ids: list[str] = []
        self._producer: WireProducer | None = None
        self._positions: dict[TopicPartition, int] = {}
        self.failures: list[RestartTask | TransactionLost] = []

    def __enter__(self) -> "Copies":
        return self

    def __exit__(self, *_: object) -> None:
        if self._producer is not None:
            self._producer.close()
        self._bench.close()

    def mirror(self, upto: int) -> None:
        """Mirror every partition up to an offset, through as many incarnations as it takes."""
        deadline = time.monotonic() + WITHIN.total_seconds()
        while not self._positions or min(self._positions.values()) < upto:
            assert time.monotonic() < deadline, self.failures
            try:
                self._step()
            except (RestartTask, TransactionLost) as exc:
                self.failures.append(exc)
                self._end_incarnation()

    def _step(self) -> None:
        if self._producer is None:
            self._producer = self._acquired()
        self._producer.begin()
        ends = {p: at + RECORDS for p, at in self._positions.items()}
        for p, at in self._positions.items():
            self._producer.send(run_of(numbers(at), first=at), p)
        self._producer.pump()
        self._producer.flush(within=BUDGET)
        commits = {p: ShadowCommit(position=Position(at), metadata="") for p, at in ends.items()}
        self._producer.commit(commits, within=BUDGET)
        self._positions = ends

    def _acquired(self) -> WireProducer:
        """Take a new id, fence the earlier ones, and read the positions."""
        self._ids.append(f"id-{uuid.uuid4().hex}")
        producer = self._lane.open_producer(self._ids[-1])
        try:
            self._fence(set(self._ids[:-1]))
            self._positions = self._shadow_offsets()
        except BaseException:
            producer.close()
            raise
        return producer

    def _fence(self, alive: set[str]) -> None:
        """Fence ids that were used; one that never wrote stays in the list, as a claim would."""
        fenced = self._lane.fence(sorted(alive))
        if fenced != alive:
            raise RestartTask(f"could not fence {alive - fenced}")

    def _shadow_offsets(self) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}

        def stable() -> bool:
            for p, one in self._target.shadow_offsets(self.partitions).items():
                if one is None:
                    found[p] = 0
                elif isinstance(one, ShadowOffset):
                    found[p] = one.position.next_offset
            return len(found) == len(self.partitions)

        wait_until(stable, within=WITHIN, what="stable shadow offsets")
        return found

    def _end_incarnation(self) -> None:
        producer, self._producer = self._producer, None
        self._positions = {}
        if producer is None:
            return
        with suppress(TransactionLost):  # what a broken engine might do
            producer.commit({}, within=BUDGET)
        producer.close()

    def assert_exact(self) -> None:
        """Assert that the target has each number once, in order, and the offsets that belong."""
        offsets = self._shadow_offsets()
        for p in self.partitions:
            self._bench.until(lambda p=p: self._seen(p) is not None, "a stable end")  # type: ignore[misc]
            values = [int(value or b"-1") for _, value in self._bench.read(p)]
            assert values == list(range(len(values)))
            assert offsets[p] == len(values)
            assert len(values) >= RECORDS

    def _seen(self, p: TopicPartition) -> bool | None:
        end = self._target.ends([p])[p]
        return True if end.is_decided else None


def numbers(first: int) -> list[Row]:
    """Return records that carry their upstream offset."""
    return [(NOW_MS, b"k", b"%d" % (first + i), None) for i in range(RECORDS)]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Initialise an id within the deadline of a request."""
    monkeypatch.setattr(producer_module, "INIT_WITHIN_S", 2 * ANSWERED_MS / 1000)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_a_fault_at_any_request_keeps_every_record_once(
    proxied: KafkaCluster, protocol: int, action: Action
) -> None:
    """Whatever happens to one request, the target is exact, and no commit is sent twice."""
    with fault_proxies(proxied.proxy_ports) as proxies:
        for step in STEPS[protocol]:
            for skip in (0, 2):
                one_fault(proxied, proxies[1], step, action, skip=skip)


def one_fault(
    cluster: KafkaCluster, proxy: FaultProxy, step: Api, action: Action, *, skip: int
) -> None:
    """Mirror with one fault, and check what is known and what the target holds."""
    if step is Api.INIT_PRODUCER_ID and skip:
        return
    with Copies(cluster) as copies:
        ended = proxy.seen(Api.END_TXN)
        delay = timedelta(seconds=30) if action is Action.DELAY_RESPONSE else None
        fault = proxy.inject(Fault(step, action, skip=skip, delay=delay))
        copies.mirror(4 * RECORDS)
        assert fault.hits == 1, f"{action} of {step}: never hit; the test proves nothing"
        assert len(copies.failures) == 1, copies.failures
        assert isinstance(copies.failures[0], TransactionLost) or step is Api.INIT_PRODUCER_ID
        fault.release()  # what was held or stolen arrives now, late
        copies.mirror(8 * RECORDS)
        assert len(copies.failures) == 1, copies.failures
        assert proxy.seen(Api.END_TXN) - ended <= 9, "a commit was sent twice"
        copies.assert_exact()
        proxy.clear()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("seed", range(4))
def test_many_faults_keep_every_record_once(
    proxied: KafkaCluster, protocol: int, seed: int
) -> None:
    """Faults at random, also while an incarnation starts, never lose or repeat a record."""
    chosen = random.Random(seed)
    with fault_proxies(proxied.proxy_ports) as proxies, Copies(proxied) as copies:
        faults: list[Fault] = []
        for number in range(1, 25):
            fault = Fault(
                chosen.choice([*STEPS[protocol], Api.FIND_COORDINATOR, Api.METADATA]),
                chosen.choice(ACTIONS),
                skip=chosen.randrange(4),
                delay=timedelta(seconds=chosen.choice((0.1, 2))),
            )
            faults.append(proxies[1].inject(fault))
            if chosen.random() < 0.3:
                for one in faults:
                    one.release()
            if chosen.random() < 0.2:
                proxies[1].cut_all()
            copies.mirror(number * RECORDS)
        proxies[1].clear()
        copies.mirror(26 * RECORDS)
        assert copies.failures, "no fault was hit; the test proves nothing"
        copies.assert_exact()
