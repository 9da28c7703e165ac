"""The lag of what is not mirrored is the whole log."""

from eos_mirror.core.lag import begin_at_the_start, of_an_earlier_topic
from eos_mirror.core.records import TopicPartition

ONE, TWO, THREE = (TopicPartition("orders", p) for p in range(3))


def test_a_partition_without_a_position_begins_at_the_start_if_the_flow_does() -> None:
    """Otherwise its lag is not known before its first commit."""
    ends = {ONE: 10, TWO: 10}
    assert begin_at_the_start({ONE: 5}, ends, start_position="earliest") == [TWO]
    assert begin_at_the_start({ONE: 5}, ends, start_position="latest") == []


def test_a_position_of_a_log_that_is_gone_counts_as_none() -> None:
    """It is after the end, or was committed for an earlier topic with the same name."""
    positions, ends = {ONE: 11, TWO: 10, THREE: 10}, {ONE: 10, TWO: 10, THREE: 50}
    found = begin_at_the_start(positions, ends, start_position="latest", replaced={THREE})
    assert found == [ONE, THREE]


def test_a_position_is_of_an_earlier_topic_if_both_ids_are_known_and_differ() -> None:
    """Positions that another program committed, and old clusters, have no topic id."""
    committed = {ONE: "a", TWO: "b", THREE: ""}
    assert of_an_earlier_topic(committed, {"orders": "a"}) == {TWO}
    assert of_an_earlier_topic(committed, {"orders": ""}) == set()
    assert of_an_earlier_topic(committed, {}) == set()
