"""
Runs every conformance test on the fake that the engine's tests use, and on Kafka with each lane.

Also pins tests whose threads alternate to one core.
"""

import os
import random
import uuid
from collections.abc import Iterator

import pytest

from eos_mirror.core.flow import Flow
from eos_mirror.testing import KafkaCluster
from eos_mirror.testing.releases import chosen_release
from tests.engine.bench import SourceBench, TargetBench
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.fake_bench import FakeSourceBench, FakeTargetBench
from tests.engine.real_bench import RealSourceBench, RealTargetBench
from tests.engine.wire_bench import WireSourceBench, WireTargetBench

ON_BROKERS = [pytest.mark.brokers, pytest.mark.long]
KINDS = ["fake", *(pytest.param(kind, marks=ON_BROKERS) for kind in ("client", "wire"))]
TARGETS = [*KINDS, pytest.param("wire-tv1", marks=ON_BROKERS)]


@pytest.fixture(scope="module")
def one_core() -> Iterator[None]:
    """
    Pin tests whose threads alternate to one core: between cores, a hand-over takes twice the time.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {random.choice(sorted(before))})
    yield
    os.sched_setaffinity(0, before)


def new_flow() -> Flow:
    """Return a flow with names that nothing else uses."""
    name = uuid.uuid4().hex[:8]
    return Flow(f"s{name}", f"t{name}")


@pytest.fixture(scope="module")
def older_target(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A cluster with the older transaction protocol."""
    with KafkaCluster(name="older", features=chosen_release().features_for(1)) as cluster:
        yield cluster


@pytest.fixture(params=TARGETS)
def target_bench(request: pytest.FixtureRequest) -> Iterator[TargetBench]:
    """A target cluster."""
    if request.param == "fake":
        yield FakeTargetBench(new_flow())
        return
    name = "older_target" if request.param == "wire-tv1" else "target_cluster"
    kind = RealTargetBench if request.param == "client" else WireTargetBench
    bench = kind(request.getfixturevalue(name), new_flow())
    yield bench
    bench.close()


@pytest.fixture(params=KINDS)
def source_bench(request: pytest.FixtureRequest) -> Iterator[SourceBench]:
    """A source cluster."""
    if request.param == "fake":
        yield FakeSourceBench()
        return
    kind = RealSourceBench if request.param == "client" else WireSourceBench
    bench = kind(request.getfixturevalue("source_cluster"), new_flow())
    yield bench
    bench.close()


@pytest.fixture
def scenario() -> Iterator[CheckedScenario]:
    """One slot, three partitions with a record each."""
    made = CheckedScenario(slots=1)
    for partition in made.stage.partitions:
        made.stage.produce(partition)
    yield made
    made.close()
