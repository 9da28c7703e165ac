"""By how much a partition lags, and since when; and the numbers of a stream that rests."""

from pathlib import Path
from typing import cast

import pytest

from eos_mirror.core.messages import PartitionMetrics
from eos_mirror.core.spread import Spread, Window
from eos_mirror.driver import partition_metrics
from eos_mirror.driver.partition_metrics import (
    ENDS_KEPT,
    Behind,
    FlowPartitionMetrics,
    metric_rows,
)
from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.metadata import ClusterMetadata
from tests.driver.fake_metadata import FakeMetadata
from tests.driver.fakes import ORDERS, REMOTE, FakeOffsets, flow_of, group_offset


def test_a_lag_begins_with_the_first_end_that_was_not_reached() -> None:
    """A lag begins with the first end that was not reached, so steady progress keeps it short."""
    behind = Behind()
    behind.look(0.0, end=100, position=0)
    behind.look(15.0, end=200, position=100)
    assert (behind.records, behind.since(20.0)) == (100, 5.0)
    behind.look(30.0, end=300, position=150)
    assert (behind.records, behind.since(30.0)) == (150, 15.0)
    behind.look(45.0, end=300, position=300)
    assert (behind.records, behind.since(99.0)) == (0, 0.0)


def test_an_idle_source_with_a_waiting_rest_grows_older() -> None:
    """If neither the end nor the position moves, the lag grows older."""
    behind = Behind()
    for look in range(5):
        behind.look(look * 15.0, end=7, position=3)
    assert (behind.records, behind.since(60.0)) == (4, 60.0)


def test_a_long_lag_keeps_its_beginning() -> None:
    """A long lag keeps its beginning, after any number of samples."""
    behind = Behind()
    for look in range(20 * ENDS_KEPT):
        behind.look(float(look), end=look + 1, position=0)
    assert behind.since(20.0 * ENDS_KEPT) == 20 * ENDS_KEPT
    assert len(behind._unreached) <= ENDS_KEPT  # noqa: SLF001 (memory is not seen from outside)


def test_a_copy_ahead_of_the_end_that_was_seen_is_not_behind() -> None:
    """A position after the sampled end is no lag: the two are sampled one after the other."""
    behind = Behind()
    behind.look(0.0, end=10, position=12)
    assert (behind.records, behind.since(1.0)) == (0, 0.0)


def test_what_an_open_transaction_hides_is_part_of_the_lag() -> None:
    """The lag counts to the high watermark, and grows older while nothing can be read."""
    behind = Behind()
    behind.look(1, end=1_011, position=10, stable=10)
    behind.look(6, end=1_011, position=10, stable=10)

    assert (behind.records, behind.hidden, behind.since(6)) == (1_001, 1_001, 5)

    behind.look(11, end=1_011, position=1_011, stable=1_011)
    assert (behind.records, behind.hidden, behind.since(11)) == (0, 0, 0)


def test_the_last_value_of_a_stream_that_rests_stays() -> None:
    """As in MirrorMaker 2: a dashboard of the last latency does not lose its series at night."""
    window = Window(0.0)
    assert dict(metric_rows("age", window, 0.0)) == {}
    window.add(0.0, spread=Spread.of([20, 40]))

    busy = dict(metric_rows("age", window, 1.0))
    assert busy == {"age": 40, "age-min": 20, "age-max": 40, "age-avg": 30}
    assert dict(metric_rows("age", window, 1_000.0)) == {"age": 40}


def test_a_partition_has_the_task_that_measured_it_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new names of MirrorMaker 2's metrics need it. The count continues with the next task."""
    monkeypatch.setattr(partition_metrics, "CommittedOffsets", lambda *_, **__: FakeOffsets())
    metrics = FlowPartitionMetrics(
        flow_of(tmp_path),
        cast("ClusterMetadata", FakeMetadata()),
        lambda: {ORDERS: REMOTE},
        now=lambda: 1.0,
    )
    measured = PartitionMetrics(partition=REMOTE, records=3, bytes=30, age=None, latency=None)
    for task in (0, 1):
        metrics.add([measured], task=task)

    ((attributes, values),) = metrics.read_with_task()
    assert (attributes["task"], attributes["partition"]) == ("1", "0")
    assert values["record-count"] == 6
    assert metrics.read() == [
        ({key: text for key, text in attributes.items() if key != "task"}, values)
    ]


def test_the_lag_grows_while_the_target_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last known position counts; before the first one, nothing is known."""
    offsets, source = FakeOffsets(down=TargetUnavailable("no answer")), FakeMetadata()
    monkeypatch.setattr(partition_metrics, "CommittedOffsets", lambda *_, **__: offsets)
    metrics = FlowPartitionMetrics(
        flow_of(tmp_path), cast("ClusterMetadata", source), lambda: {ORDERS: REMOTE}
    )
    source.ends = {ORDERS: 10}
    metrics.look()
    assert metrics.read() == []

    offsets.committed, offsets.down = {REMOTE: group_offset(8)}, None
    metrics.look()
    offsets.down, source.ends = TargetUnavailable("no answer"), {ORDERS: 25_000}
    metrics.look()

    ((_, values),) = metrics.read()
    assert values["lag.records"] == 25_000 - 8
