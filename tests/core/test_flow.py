"""The names that a flow uses on the clusters."""

from eos_mirror.core.flow import INTERNAL_PREFIX, Flow

FLOW = Flow("A", "B")


def test_a_flow_prints_as_kafka_writes_it() -> None:
    """A flow prints as source, arrow and target."""
    assert str(FLOW) == "A->B"


def test_names_are_stable() -> None:
    """Names do not change, so a new release finds the topics and groups of the old one."""
    assert FLOW.source_group == "eos-mirror.A.B"
    assert FLOW.shadow_group == "eos-mirror.A.B.shadow"
    assert FLOW.claims_topic == "eos-mirror.A.B.claims.internal"
    assert FLOW.offset_map_topic == "eos-mirror.A.B.offset-map.internal"
    assert FLOW.transactional_id("0123") == "eos-mirror.A.B.0123"
    assert FLOW.instance_id(7) == "eos-mirror.A.B.7"


def test_everything_is_ours_by_its_name() -> None:
    """Groups, topics and ids have the prefix that excludes them from mirroring."""
    names = [
        FLOW.source_group,
        FLOW.shadow_group,
        FLOW.claims_topic,
        FLOW.offset_map_topic,
        FLOW.transactional_id("x"),
        FLOW.instance_id(0),
    ]

    assert all(name.startswith(INTERNAL_PREFIX) for name in names)
    assert len(set(names)) == len(names)


def test_the_way_back_shares_nothing() -> None:
    """A->B and B->A have different names for everything."""
    back = Flow("B", "A")

    assert FLOW.claims_topic != back.claims_topic
    assert FLOW.shadow_group != back.shadow_group
