"""Topic selection: as in MirrorMaker 2 of Kafka 4.3, without our own topics."""

import pytest

from eos_mirror.core.filters import TopicFilter, unmatched
from eos_mirror.core.flow import Flow
from eos_mirror.core.plan import TopicMapping
from eos_mirror.core.policy import ReplicationPolicy, replication_policy
from eos_mirror.errors import ConfigError

FLOW = Flow("A", "B")
ALL = TopicFilter([".*"], [])
NONE = TopicFilter([], [])
DEFAULT = replication_policy("DefaultReplicationPolicy")
IDENTITY = replication_policy("IdentityReplicationPolicy", source_alias="A")


def is_replicated(
    topic: str,
    topic_filter: TopicFilter,
    *,
    policy: ReplicationPolicy,
    heartbeats_replicated: bool = True,
) -> bool:
    """Return whether A->B mirrors a topic of A."""
    mapping = TopicMapping(
        flow=FLOW,
        policy=policy,
        topic_filter=topic_filter,
        heartbeats_replicated=heartbeats_replicated,
    )
    return mapping.remote_of(topic) is not None


@pytest.mark.parametrize(
    ("include", "exclude", "topic", "expected"),
    [
        ([".*"], [], "orders", True),
        ([], [], "orders", False),
        (["orders"], [], "orders", True),
        (["orders"], [], "orders-eu", False),
        (["orders"], [], "my-orders", False),
        (["a|b"], [], "b", True),
        (["a", "orders.*"], [], "orders-eu", True),
        ([".*"], ["orders"], "orders", False),
        (["orders"], ["orders"], "orders", False),
        ([".*"], ["ord"], "orders", True),
        (["(?i)ORDERS", "b"], [], "orders", True),
        ([".*"], [r"mm2.*\.internal", r".*\.replica", "__.*"], "orders.replica", False),
    ],
)
def test_filter_matches_whole_names_and_exclude_wins(
    include: list[str],
    exclude: list[str],
    topic: str,
    expected: bool,
) -> None:
    """Patterns match whole names; exclude beats include; an empty include list matches nothing."""
    assert TopicFilter(include, exclude).matches(topic) is expected


def test_a_pattern_without_a_match_comes_with_its_near_misses() -> None:
    """
    A pattern without a match is listed with similar topics.

    Topics that differ only in case are preferred to other similar names.
    """
    topics = ["orders", "Orders", "payments", "__consumer_offsets"]
    include = ["orders.*", "ORDERS", "ordres.*", r"pay\.ments", "inventory", ".*"]
    assert list(unmatched(include, topics)) == [
        ("ORDERS", ["Orders", "orders"]),
        ("ordres.*", ["orders", "Orders"]),
        (r"pay\.ments", ["payments"]),
        ("inventory", []),
    ]


def test_every_bad_pattern_is_reported_at_once() -> None:
    """One error names all bad patterns, also those that mean something else in Java."""
    with pytest.raises(ConfigError) as caught:
        TopicFilter(["orders(", "fine"], [r"\p{Alpha}+", "[a-z&&[^b]]"])

    assert len(caught.value.faults) == 3
    assert all(
        repr(pattern) in fault
        for pattern, fault in zip(
            ["orders(", r"\p{Alpha}+", "[a-z&&[^b]]"], caught.value.faults, strict=True
        )
    )


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("orders", True),
        ("C.orders", True),
        ("C.D.orders", True),
        ("orders.internal", True),
        ("orders-internal", True),
        ("B.orders", False),
        ("A.orders", True),
        ("C.B.orders", False),
        ("B.A.orders", False),
        ("__consumer_offsets", False),
        (".hidden", False),
        ("mm2-configs.C.internal", False),
        ("C.checkpoints.internal", False),
        ("eos-mirror.A.B.claims.internal", False),
        ("eos-mirror.mine", False),
        ("heartbeats", True),
        ("C.heartbeats", True),
        ("B.heartbeats", False),
    ],
)
def test_default_policy_selection(topic: str, expected: bool) -> None:
    """
    The default policy excludes internal topics, our own topics, and topics that came from B.

    `A.orders` is mirrored as `A.A.orders`, whose name says on B that it came from A.
    """
    assert is_replicated(topic, ALL, policy=DEFAULT) is expected


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("orders", True),
        ("A.orders", True),
        ("B.orders", True),
        ("heartbeats", True),
        ("A.heartbeats", True),
        ("C.heartbeats", True),
        ("B.heartbeats", False),
        ("C.B.heartbeats", False),
        ("A.checkpoints.internal", False),
        ("eos-mirror.A.B.claims.internal", False),
    ],
)
def test_identity_policy_selection(topic: str, expected: bool) -> None:
    """The identity policy cannot detect cycles, except by the names of heartbeat topics."""
    assert is_replicated(topic, ALL, policy=IDENTITY) is expected


def test_heartbeats_pass_the_filter_unless_switched_off() -> None:
    """Heartbeats are replicated without being listed (KIP-1089)."""
    assert is_replicated("heartbeats", NONE, policy=DEFAULT)
    assert not is_replicated("heartbeats", NONE, policy=DEFAULT, heartbeats_replicated=False)
    assert is_replicated("heartbeats", ALL, policy=DEFAULT, heartbeats_replicated=False)


def test_listing_our_own_topics_does_not_replicate_them() -> None:
    """Our own topics are never replicated, even if the filters list them."""
    ours = TopicFilter([r"eos-mirror\..*"], [])

    assert not is_replicated(FLOW.offset_map_topic, ours, policy=DEFAULT)
