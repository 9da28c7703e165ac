"""Heartbeats: best effort, for each pair of clusters on its own."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from eos_mirror.core.internal_records import Heartbeat
from eos_mirror.core.policy import HEARTBEATS_TOPIC
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver import heartbeats
from eos_mirror.driver.heartbeats import Heartbeats
from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.topic_reader import read_log
from eos_mirror.kafka.topics import Topics
from eos_mirror.settings.heartbeats import HeartbeatSettings
from eos_mirror.testing import wait_until
from eos_mirror.testing.external import Cluster
from tests.driver.fakes import SOON, Events, settings_of

NOW = timedelta(0)
OFTEN = timedelta(milliseconds=1)
LIMIT = timedelta(seconds=5)


@dataclass
class FakeWriter:
    """
    `BestEffortWriter` of one target.

    Attributes:
        errors: What the next writes raise; None: the record before this one has arrived.
        written: Heartbeats that were written.
    """

    errors: list[Exception | None] = field(default_factory=list)
    written: list[Heartbeat] = field(default_factory=list)

    def write(self, key: bytes, value: bytes, *, timestamp_ms: int) -> bool:
        """See `BestEffortWriter`."""
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        heartbeat = Heartbeat.decode(key, value)
        assert heartbeat.timestamp_ms == timestamp_ms
        self.written.append(heartbeat)
        return len(self.written) > 1


class Stage:
    """Heartbeats of both pairs of two clusters."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.events = Events()
        self.writers = {"A": FakeWriter(), "B": FakeWriter()}
        keys = {"heartbeats.topic.replication.factor": 2}
        pairs = [replace(pair, interval=OFTEN) for pair in settings_of(folder, keys).heartbeats]
        targets = iter([pair.flow.target for pair in pairs])

        def writer(name: str, _admin: object, _producer: object, **how: Any) -> FakeWriter:
            assert (name, how["replication_factor"]) == (HEARTBEATS_TOPIC, 2)
            assert how["outlives_clients"], "the driver does not exit when a broker is lost"
            return self.writers[next(targets)]

        patch.setattr(heartbeats, "BestEffortWriter", writer)
        self.firsts: list[bool] = []
        self.beating = Heartbeats(
            pairs,
            after=NOW,
            on_event=self.events,
            on_first=lambda: self.firsts.append(True),
        )

    def beat(self) -> None:
        """Write until each pair has written three heartbeats and met its errors."""
        self.beating.start()
        wait_until(
            lambda: all(len(one.written) > 3 and not one.errors for one in self.writers.values()),
            within=SOON,
            what="heartbeats",
        )
        self.beating.stop(LIMIT)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Not started."""
    return Stage(tmp_path, monkeypatch)


def test_every_pair_of_clusters_has_heartbeats(stage: Stage) -> None:
    """Also the pair whose flow is not enabled: its heartbeats arrive with the copies."""
    stage.beat()

    for target, source in (("A", "B"), ("B", "A")):
        pairs = {(one.source, one.target) for one in stage.writers[target].written}
        assert pairs == {(source, target)}
    assert stage.events == []
    assert stage.firsts == [True, True]


def test_a_failure_is_reported_once_and_stops_no_other_pair(stage: Stage) -> None:
    """It is reported again only after a heartbeat has arrived."""
    down = TargetUnavailable("no answer")
    stage.writers["B"].errors = [down, down, None, None, down, ValueError("odd"), down]

    stage.beat()

    fields = {"flow": "A->B", "cause": "TargetUnavailable", "reason": "no answer"}
    failed = ("heartbeats.failed", fields)
    over = ("failure.over", {"flow": "A->B", "what": "heartbeats.failed"})
    assert stage.events == [failed, over] * 2


@pytest.fixture
def pair(tmp_path: Path, target_cluster: Cluster) -> Iterator[HeartbeatSettings]:
    """A pair whose target is a real cluster. No flow of another test may find its heartbeats."""
    keys = {
        "B.bootstrap.servers": target_cluster.bootstrap,
        "heartbeats.topic.replication.factor": 1,
    }
    pairs = settings_of(tmp_path, keys).heartbeats
    yield next(pair for pair in pairs if pair.flow.target == "B")
    target_cluster.admin().delete_topics([HEARTBEATS_TOPIC])[HEARTBEATS_TOPIC].result(30)


@pytest.mark.brokers
def test_heartbeats_arrive_on_a_real_cluster(
    pair: HeartbeatSettings, target_cluster: Cluster
) -> None:
    """In a compacted topic, with the time at which they were written."""
    events, partition = Events(), TopicPartition(HEARTBEATS_TOPIC, 0)
    interval = timedelta(milliseconds=20)
    beating = Heartbeats(
        [replace(pair, interval=interval)], after=NOW, on_event=events, on_first=lambda: None
    )
    config = target_cluster.client_config()
    topics, metadata = Topics(config, side=Side.TARGET), ClusterMetadata(config, side=Side.TARGET)

    beating.start()
    wait_until(lambda: HEARTBEATS_TOPIC in topics.list(), within=LIMIT * 4, what="the topic")
    wait_until(
        lambda: metadata.ends([partition])[partition] > 1, within=LIMIT * 4, what="two heartbeats"
    )
    beating.stop(LIMIT)

    log = read_log(config, HEARTBEATS_TOPIC, group="readers")
    first, *_, last = (Heartbeat.decode((key or "").encode(), value) for key, value in log)
    assert (first.source, first.target) == (last.source, last.target) == ("A", "B")
    assert first.timestamp_ms < last.timestamp_ms
    assert topics.configs([HEARTBEATS_TOPIC])[HEARTBEATS_TOPIC]["cleanup.policy"] == "compact"
    assert events == []
