"""The first catch-up of a run, as its driver measures it."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.driver import catch_up, partition_metrics
from eos_mirror.driver.catch_up import FirstCatchUp
from eos_mirror.driver.flow import FlowRunner
from tests.driver.fake_metadata import FakeMetadata
from tests.driver.fakes import ORDERS, REMOTE, FakeOffsets, flow_of, group_offset

USERS, REMOTE_USERS = TopicPartition("users", 0), TopicPartition("A.users", 0)


class Stage:
    """A flow with two partitions, and its clusters."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.offsets, self.source = FakeOffsets(), FakeMetadata()
        patch.setattr(partition_metrics, "CommittedOffsets", lambda *_, **__: self.offsets)
        patch.setattr(catch_up, "ClusterMetadata", lambda *_, **__: self.source)
        self.runner = SimpleNamespace(
            settings=flow_of(folder),
            topics=SimpleNamespace(partitions={ORDERS: REMOTE, USERS: REMOTE_USERS}),
            stopped={},
            waiting={},
            ordered=dict,
            has_failed=False,
        )
        self.progress = FirstCatchUp([cast("FlowRunner", self.runner)])

    def look(self, positions: Mapping[TopicPartition, int]) -> tuple[int, int, bool]:
        """Look when the copies are at these positions, and the source ends at offset 1000."""
        self.source.ends = {ORDERS: 1_000, USERS: 1_000}
        self.offsets.committed = {one: group_offset(at) for one, at in positions.items()}
        self.progress.look()
        return self.progress.done, self.progress.total, self.progress.is_over


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Return a flow."""
    return Stage(tmp_path, monkeypatch)


def test_a_flow_catches_up_from_its_positions_to_the_ends(stage: Stage) -> None:
    """The shadow offsets on the target are what counts."""
    assert stage.look({REMOTE: 900, REMOTE_USERS: 0}) == (0, 1_100, False)
    assert stage.look({REMOTE: 1_000, REMOTE_USERS: 500}) == (600, 1_100, False)
    assert stage.look({REMOTE: 1_000, REMOTE_USERS: 1_000}) == (1_100, 1_100, True)


def test_what_an_open_transaction_hides_is_not_waited_for(stage: Stage) -> None:
    """No reader gets it before the transaction ends."""
    stage.source.hidden = {ORDERS: 50}

    assert stage.look({REMOTE: 900, REMOTE_USERS: 1_000}) == (0, 100, False)
    assert stage.look({REMOTE: 1_000, REMOTE_USERS: 1_000}) == (100, 100, True)


@pytest.mark.parametrize("why", ["stopped", "waiting", "ordered"])
def test_a_partition_that_stands_still_is_left_out(stage: Stage, why: str) -> None:
    """It would hold up the bar until it is repaired."""
    idle = {USERS: "a reason"}
    setattr(stage.runner, why, (lambda: idle) if why == "ordered" else idle)

    assert stage.look({REMOTE: 900, REMOTE_USERS: 0}) == (0, 100, False)
    assert stage.look({REMOTE: 1_000, REMOTE_USERS: 0}) == (100, 100, True)


def test_a_flow_that_failed_or_mirrors_nothing_is_not_waited_for(stage: Stage) -> None:
    """The others are still watched."""
    stage.runner.has_failed = True
    assert stage.progress.is_over

    stage.runner.has_failed, stage.runner.topics.partitions = False, {}
    assert stage.progress.is_over
