"""The desired-state topic of a flow, as its run reads it."""

from collections.abc import Collection, Mapping, Sequence
from typing import cast

import pytest

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.desired_topic import DesiredTopic, write_desired
from eos_mirror.kafka.target import KafkaTarget
from eos_mirror.kafka.topics import Topics, TopicSpec
from eos_mirror.testing.external import Cluster

pytestmark = pytest.mark.brokers


class Desired:
    """A topic that is read, and written by an operator at a bad moment."""

    def __init__(self, cluster: Cluster, flow: Flow) -> None:
        self._config = cluster.client_config()
        self._topics = Topics(self._config, side=Side.TARGET)
        self._target = KafkaTarget(flow, client_config=self._config, early=False)
        self._spec = TopicSpec(name=flow.desired_topic, partitions=1, replication_factor=1)
        self.late: list[str] = []
        self.topic = DesiredTopic(
            flow, self._topics, cast("KafkaTarget", self), config=self._config
        )

    def write(self, key: str) -> int:
        """Append a record; return its offset."""
        return write_desired(self._topics, self._config, self._spec, [(key, "{}")])

    def stable_ends(
        self, remotes: Sequence[TopicPartition]
    ) -> tuple[Mapping[TopicPartition, int], Collection[TopicPartition]]:
        """Return the ends as they are, and let the operator write before the records are read."""
        found = self._target.stable_ends(remotes)
        for key in self.late:
            self.write(key)
        self.late = []
        return found


def test_the_end_lies_behind_every_record_that_was_read(ns: str, target_cluster: Cluster) -> None:
    """Also behind one that was written after the end was asked for: a run reports what it did."""
    desired = Desired(target_cluster, Flow(f"{ns}-a", f"{ns}-b"))
    assert desired.topic.updates() == []
    first = desired.write("one")
    desired.late = ["two"]

    found = desired.topic.updates()

    assert [key for key, _ in found] == ["one", "two"]
    assert desired.topic.end == first + 2
    assert desired.topic.updates() == []
