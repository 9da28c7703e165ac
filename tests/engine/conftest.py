"""Every conformance test twice: on the fake that the engine's tests stand on, and on Kafka."""

import uuid
from collections.abc import Iterator

import pytest

from eos_mirror.core.flow import Flow
from tests.engine.bench import SourceBench, TargetBench
from tests.engine.fake_bench import FakeSourceBench, FakeTargetBench
from tests.engine.real_bench import RealSourceBench, RealTargetBench

KINDS = ["fake", pytest.param("real", marks=[pytest.mark.brokers, pytest.mark.long])]


def new_flow() -> Flow:
    """Names that nothing else has."""
    name = uuid.uuid4().hex[:8]
    return Flow(f"s{name}", f"t{name}")


@pytest.fixture(params=KINDS)
def target_bench(request: pytest.FixtureRequest) -> Iterator[TargetBench]:
    """A target cluster."""
    if request.param == "fake":
        yield FakeTargetBench(new_flow())
        return
    bench = RealTargetBench(request.getfixturevalue("target_cluster"), new_flow())
    yield bench
    bench.close()


@pytest.fixture(params=KINDS)
def source_bench(request: pytest.FixtureRequest) -> Iterator[SourceBench]:
    """A source cluster."""
    if request.param == "fake":
        yield FakeSourceBench()
        return
    bench = RealSourceBench(request.getfixturevalue("source_cluster"), new_flow())
    yield bench
    bench.close()
