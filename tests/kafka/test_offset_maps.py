"""Reading the offset map where a broker does not know its topic yet."""

from typing import Any, cast

import pytest

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import RestartTask, TargetUnavailable
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.offset_maps import map_unless_open

FLOW = Flow("A", "B")


class NewTopic:
    """One broker lists the topic; at first its leader answers as if it did not exist."""

    def __init__(self) -> None:
        self.asked = 0

    def topics(self, names: list[str]) -> dict[str, object]:
        """Answer that every topic exists."""
        return dict.fromkeys(names)

    def ends(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Fail the first request, and answer the second."""
        self.asked += 1
        if self.asked == 1:
            raise RestartTask("list offsets: UNKNOWN_TOPIC_OR_PART")
        return dict.fromkeys(partitions, 0)

    high_watermarks = ends


def test_a_leader_that_does_not_know_a_new_topic_yet_is_asked_again() -> None:
    """Such a leader is an outage, which a start waits out; it used to end the start."""
    metadata = NewTopic()
    client = cast(ClusterMetadata, metadata)
    config: dict[str, Any] = {}

    with pytest.raises(TargetUnavailable, match="UNKNOWN_TOPIC_OR_PART"):
        map_unless_open(client, FLOW, config)

    assert map_unless_open(client, FLOW, config) == {}
