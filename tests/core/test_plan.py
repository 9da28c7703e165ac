"""The flow plan is sorted and complete, and it names every conflict."""

import re
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.filters import TopicFilter
from eos_mirror.core.flow import Flow
from eos_mirror.core.plan import (
    Conflict,
    FlowPlan,
    Route,
    TooSmall,
    TopicMapping,
    cross_flow_conflicts,
    plan_flow,
)
from eos_mirror.core.policy import (
    InternalTopics,
    Rename,
    RenamingPolicy,
    ReplicationPolicy,
    replication_policy,
)

FLOW = Flow("A", "B")
ALL = TopicFilter([".*"], [])
DEFAULT = replication_policy("DefaultReplicationPolicy")
IDENTITY = replication_policy("IdentityReplicationPolicy")


@dataclass(frozen=True, slots=True)
class FoldingPolicy:
    """A policy that gives several topics one name."""

    @property
    def internal_topics(self) -> InternalTopics:
        """The default names."""
        return InternalTopics()

    def format_remote_topic(self, alias: str, topic: str) -> str:
        """Return the name in lower case."""
        return f"{alias}.{topic.lower()}"

    def topic_source(self, topic: str) -> str | None:  # noqa: ARG002 - the Protocol's signature
        """Return None: the source is unknown."""
        return None

    def upstream_topic(self, topic: str) -> str | None:  # noqa: ARG002 - the Protocol's signature
        """Return None: the upstream topic is unknown."""
        return None


def _plan(
    source: dict[str, int],
    target: dict[str, int] | None = None,
    *,
    policy: ReplicationPolicy = DEFAULT,
    flow: Flow = FLOW,
) -> FlowPlan:
    return plan_flow(source, target or {}, TopicMapping(flow=flow, policy=policy, topic_filter=ALL))


def _route(topic: str, partitions: int) -> Route:
    return Route(source_topic=topic, remote_topic=f"A.{topic}", partitions=partitions)


def test_a_plan_routes_what_is_replicated() -> None:
    """Routes are sorted; missing and too small remote topics are listed separately."""
    plan = _plan(
        {"orders": 3, "clicks": 5, "users": 2, "B.back": 1, "__consumer_offsets": 50},
        {"A.orders": 3, "A.clicks": 2, "other": 1},
    )

    assert plan == FlowPlan(
        flow=FLOW,
        routes=(_route("clicks", 5), _route("orders", 3), _route("users", 2)),
        to_create=(_route("users", 2),),
        too_small=(TooSmall(source_topic="clicks", remote_topic="A.clicks", present=2, needed=5),),
        conflicts=(),
        left_out=("B.back",),
    )


def test_a_remote_topic_with_more_partitions_is_fine() -> None:
    """A remote topic with more partitions is accepted; partitions are never removed."""
    plan = _plan({"orders": 3}, {"A.orders": 8})

    assert (plan.to_create, plan.too_small, plan.conflicts) == ((), (), ())


def test_filters_and_heartbeats_reach_the_plan() -> None:
    """A plan has the topics that the filter selects, and heartbeats."""
    listed = TopicFilter(["orders"], [])
    topics = {"orders": 1, "clicks": 1, "heartbeats": 1}

    way = TopicMapping(flow=FLOW, policy=DEFAULT, topic_filter=listed)
    with_heartbeats = plan_flow(topics, {}, way)
    without = plan_flow(topics, {}, replace(way, heartbeats_replicated=False))

    assert with_heartbeats.routes == (_route("heartbeats", 1), _route("orders", 1))
    assert without.routes == (_route("orders", 1),)


def test_two_source_topics_for_one_remote_topic_are_a_conflict() -> None:
    """If two source topics map to one remote topic, both are named and neither is routed."""
    plan = _plan({"Orders": 1, "orders": 2, "users": 1}, policy=FoldingPolicy())

    assert [str(conflict) for conflict in plan.conflicts] == [
        "A->B Orders, orders to A.orders: several source topics for one remote topic; "
        "exclude all but one"
    ]
    assert plan.routes == (_route("users", 1),)


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("x" * 248, "the name has 250 characters, Kafka allows 249"),
        ("orders eu", "the name is illegal"),
        ("ord\u00e9rs", "the name is illegal"),
        ("orders\n", "the name is illegal"),
    ],
)
def test_a_name_that_kafka_refuses_is_a_conflict(topic: str, reason: str) -> None:
    """A name that Kafka refuses is a conflict before the topic is created."""
    anything = TopicFilter([r"(?s).*"], [])
    way = TopicMapping(flow=FLOW, policy=DEFAULT, topic_filter=anything)
    plan = plan_flow({topic: 1, "x" * 247: 1}, {}, way)

    assert [conflict.source_topics for conflict in plan.conflicts] == [(topic,)]
    assert plan.conflicts[0].reason.startswith(reason)
    assert plan.routes == (_route("x" * 247, 1),)


def test_names_that_kafka_takes_for_the_same_are_a_conflict() -> None:
    """Kafka refuses to create a topic that differs from another only in '.' and '_'."""
    plan = _plan({"orders": 1, "users": 1}, {"A_orders": 1})
    reason = "Kafka treats '.' and '_' as the same; in the way: A_orders"

    assert plan.conflicts == (
        Conflict(flow=FLOW, source_topics=("orders",), remote_topic="A.orders", reason=reason),
    )
    assert plan.routes == (_route("users", 1),)
    assert not _plan({"orders": 1}, {"A_orders": 1, "A.orders": 1}).conflicts


def test_a_topic_that_is_mirrored_is_not_refused_for_another_one() -> None:
    """A topic that is already mirrored keeps its route; the other one is refused with a reason."""
    way = TopicMapping(flow=FLOW, policy=FoldingPolicy(), topic_filter=ALL)
    plan = plan_flow({"Orders": 1, "orders": 2}, {"A.orders": 2}, way, mirrored={"orders"})

    assert plan.routes == (_route("orders", 2),)
    assert plan.refused == {
        "Orders": "A->B Orders to A.orders: several source topics for one remote topic; "
        "exclude all but one"
    }


def test_a_copy_that_exists_is_contested_by_the_topics_that_share_its_name() -> None:
    """
    An existing copy is contested by the topics that share its name.

    Copies that do not exist, and topics that are refused for another reason, do not count.
    """
    pairs = {"Orders": 1, "orders": 2, "Users": 1, "users": 1, "clicks": 1, "Clicks": 1}
    way = TopicMapping(flow=FLOW, policy=FoldingPolicy(), topic_filter=ALL)
    here = {"A.orders": 2, "A.clicks": 1}
    plan = plan_flow(pairs, here, way, taken={"A.clicks": "C->B writes it"})

    assert [one.source_topics for one in plan.contested(here)] == [("Orders", "orders")]


def test_a_topic_that_is_refused_later_is_nowhere_else_in_the_plan() -> None:
    """A topic that is refused later is neither created, grown nor copied, and has a reason."""
    plan = _plan({"orders": 3, "clicks": 5, "users": 2}, {"A.clicks": 2})
    refused = plan.refusing({"users": "the disk is full", "clicks": "too many", "gone": "?"})

    assert refused == FlowPlan(
        flow=FLOW,
        routes=(_route("orders", 3),),
        to_create=(_route("orders", 3),),
        too_small=(),
        conflicts=refused.conflicts,
    )
    assert refused.refused == {
        "users": "A->B users to A.users: the disk is full",
        "clicks": "A->B clicks to A.clicks: too many",
    }


def test_a_topic_is_refused_for_its_first_reason() -> None:
    """A topic with several conflicts is refused with the first reason."""
    way, other = _ways("A->B", "B->A", policy=IDENTITY)
    plan = plan_flow({"x" * 250: 1}, {}, way, others=[other])

    assert len(plan.conflicts) == 2
    assert plan.refused["x" * 250].endswith("the name has 250 characters, Kafka allows 249")


@given(st.permutations(["a", "b", "C.d", "B.e", "heartbeats", "f_g", "f.g"]))
def test_a_plan_does_not_depend_on_the_order_of_its_input(names: list[str]) -> None:
    """The same topics always give the same plan."""
    assert _plan(dict.fromkeys(names, 1)) == _plan(dict.fromkeys(sorted(names), 1))


def test_two_flows_onto_one_remote_topic_are_a_conflict() -> None:
    """The message names the topic, both flows and both source topics."""
    plans = [
        _plan({"orders": 1, "users": 1}, policy=IDENTITY, flow=Flow("C", "B")),
        _plan({"orders": 1}, policy=IDENTITY),
    ]

    assert cross_flow_conflicts(plans) == [
        "topic orders on B would be written by A->B (orders) and C->B (orders): exclude it from "
        "all flows but one, or use a replication policy that renames topics"
    ]


def test_a_topic_that_another_flow_writes_is_refused() -> None:
    """A topic that another flow writes is refused; the other topics of the flow are mirrored."""
    way = _ways("C->B", policy=IDENTITY)[0]
    plan = plan_flow({"orders": 1, "users": 1}, {}, way, taken={"orders": "A->B writes it"})

    assert [str(conflict) for conflict in plan.conflicts] == [
        "C->B orders to orders: A->B writes it"
    ]
    assert [route.source_topic for route in plan.routes] == ["users"]


def test_flows_to_different_clusters_or_names_do_not_conflict() -> None:
    """Flows with aliases in the names, or with different targets, do not conflict."""
    apart = [_plan({"orders": 1}), _plan({"orders": 1}, flow=Flow("C", "B"))]
    elsewhere = [
        _plan({"orders": 1}, policy=IDENTITY),
        _plan({"orders": 1}, policy=IDENTITY, flow=Flow("B", "A")),
    ]

    assert cross_flow_conflicts(apart) == []
    assert cross_flow_conflicts(elsewhere) == []


def _ways(*names: str, policy: ReplicationPolicy) -> list[TopicMapping]:
    """Return the topic mappings of flows such as "A->B" that mirror everything."""
    flows = [Flow(*name.split("->")) for name in names]
    return [TopicMapping(flow=flow, policy=policy, topic_filter=ALL) for flow in flows]


@pytest.mark.parametrize(
    ("flows", "way"),
    [
        (("A->B", "B->A"), "A->B, B->A"),
        (("A->B", "B->C", "C->A"), "A->B, B->C, C->A"),
        (("A->B", "B->C", "C->B", "C->D", "D->A"), "A->B, B->C, C->D, D->A"),
        (("A->B", "B->C", "C->B"), None),
        (("A->B", "C->B", "B->D"), None),
    ],
)
def test_a_topic_that_would_come_round_to_itself_is_a_conflict(
    flows: tuple[str, ...], way: str | None
) -> None:
    """
    With the identity policy, a cycle of flows is a conflict.

    The names do not show the cycle, and MirrorMaker 2 would copy indefinitely.
    """
    first, *others = _ways(*flows, policy=IDENTITY)
    plan = plan_flow({"orders": 1}, {}, first, others=others)

    assert [str(conflict) for conflict in plan.conflicts] == (
        [f"A->B orders to orders: its copies would come back to it by {way}; exclude it from one "
         "of them"]
        if way
        else []
    )  # fmt: skip
    assert [route.source_topic for route in plan.routes] == ([] if way else ["orders"])


def test_a_round_trip_is_none_if_every_flow_of_it_notes_where_records_have_been() -> None:
    """A cycle is allowed only if every flow of it records where records have been."""
    ways = [replace(way, notes_provenance=True) for way in _ways("A->B", "B->A", policy=IDENTITY)]
    deaf = replace(ways[1], notes_provenance=False)

    assert not plan_flow({"orders": 1}, {}, ways[0], others=ways[1:]).conflicts
    assert plan_flow({"orders": 1}, {}, ways[0], others=[deaf]).conflicts
    assert plan_flow({"orders": 1}, {}, deaf, others=ways[:1]).conflicts


def test_names_with_aliases_never_come_round() -> None:
    """With aliases in the names, no connection of clusters makes a cycle."""
    ways = _ways("A->B", "B->A", "B->C", "C->B", "C->A", "A->C", policy=DEFAULT)
    for way in ways:
        topics = {"orders": 1, "A.orders": 1, "C.B.orders": 1}
        assert not plan_flow(topics, {}, way, others=ways).conflicts


def test_a_copy_that_does_not_grow_is_mirrored_as_far_as_it_goes() -> None:
    """If a copy cannot grow, its existing partitions are mirrored and the others are refused."""
    plan = _plan({"clicks": 5, "users": 2}, {"A.clicks": 3, "A.users": 2})
    stuck = plan.not_growing({"clicks": "no right", "users": "no right"})

    assert stuck.routes == (_route("clicks", 3), _route("users", 2))
    assert stuck.too_small == ()
    assert stuck.refused == {
        "clicks": "A->B clicks to A.clicks: partitions from 3 on are not mirrored: no right"
    }
    small = {"clicks": "A.clicks accepts only smaller messages"}
    assert stuck.refusing(small).refused == {
        "clicks": "A->B clicks to A.clicks: A.clicks accepts only smaller messages"
    }, "none of its partitions is copied now"


def test_a_part_of_a_plan_is_about_its_topics_only() -> None:
    """A part of a plan lists only its own topics, and no conflicts."""
    plan = _plan({"orders": 3, "clicks": 5, "x" * 250: 1}, {"A.clicks": 2})

    assert plan.only({"clicks"}) == FlowPlan(
        flow=FLOW,
        routes=(_route("clicks", 5),),
        to_create=(),
        too_small=plan.too_small,
        conflicts=(),
    )
    assert plan.only({"orders"}).to_create == (_route("orders", 3),)
    assert plan.only({"orders"}).too_small == ()


def test_a_copy_whose_name_says_nothing_has_the_source_topic_that_is_selected() -> None:
    """Another topic of the source may have that name, and is not mirrored."""
    policy = RenamingPolicy(
        renames=[Rename(re.compile("orders"), "sales")],
        others=replication_policy("IdentityReplicationPolicy", source_alias="A"),
    )
    mapping = TopicMapping(flow=FLOW, policy=policy, topic_filter=TopicFilter(["orders"], []))

    found = mapping.sources_of_copies(["sales", "orders", "users"])

    assert found == {"sales": "orders", "users": "users"}
