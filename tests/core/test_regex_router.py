"""Connect's RegexRouter, with Java's rules of a replacement."""

import re

import pytest

from eos_mirror.core.filters import TopicFilter
from eos_mirror.core.flow import Flow
from eos_mirror.core.plan import TopicMapping, plan_flow
from eos_mirror.core.policy import replication_policy
from eos_mirror.core.regex_router import RegexRouter, RoutingPolicy, replacement_parts


def router(pattern: str, replacement: str) -> RegexRouter:
    """Return a router that applies to all names."""
    compiled = re.compile(pattern)
    parts = replacement_parts(replacement, compiled.groups)
    return RegexRouter(pattern=compiled, parts=parts)


@pytest.mark.parametrize(
    ("pattern", "replacement", "topic", "name"),
    [
        (r"A\.(.*)", "$1", "A.orders", "orders"),
        (r"A\.(.*)", "$1", "A2.orders", "A2.orders"),
        ("orders", "sales", "A.orders", "A.orders"),
        (r"(.*)-(.*)", "$2.$1.$0", "a-b", "b.a.a-b"),
        (r"(.*)", "$10", "x", "x0"),
        (r"(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)", "$10$1", "abcdefghij", "ja"),
        (r"(a)|(b)", "[$1$2]", "b", "[b]"),
        (r"(.*)", r"\$1-\\-$1", "x", "$1-\\-x"),
        (r"a|ab", "X", "ab", "Xb"),
        (r"(.*)", "", "x", ""),
    ],
)
def test_a_name_is_replaced_as_in_java(
    pattern: str, replacement: str, topic: str, name: str
) -> None:
    """The whole name has to match; the first match in it is replaced."""
    assert router(pattern, replacement)(topic) == name


@pytest.mark.parametrize("replacement", ["$2", "$", "$x", "${name}"])
def test_a_replacement_names_groups_that_exist(replacement: str) -> None:
    """Java throws such a replacement away with the first record."""
    with pytest.raises(ValueError, match="is no group"):
        router("(.*)", replacement)


@pytest.mark.parametrize(("negated", "name"), [(False, "A.b"), (True, "x")])
def test_a_router_applies_to_some_names_only(negated: bool, name: str) -> None:
    """As its predicate says."""
    one = RegexRouter(
        pattern=re.compile(".*"), parts=["x"], only=re.compile(r"A\.a"), negated=negated
    )
    assert one("A.b") == name


def test_two_flows_that_strip_the_alias_do_not_copy_a_topic_in_a_circle() -> None:
    """A stripped name does not say where its topic came from."""
    default = replication_policy("DefaultReplicationPolicy")
    policy = RoutingPolicy(routers=[router(r"[AB]\.(.*)", "$1")], others=default)
    there, back = (
        TopicMapping(flow=Flow(*ends), policy=policy, topic_filter=TopicFilter(["orders"], []))
        for ends in ("AB", "BA")
    )

    plan = plan_flow({"orders": 1}, {}, there, others=[back])

    assert not plan.routes
    assert "orders" in plan.refused


def test_two_topics_that_get_one_name_are_refused() -> None:
    """One copy has one source."""
    default = replication_policy("DefaultReplicationPolicy")
    policy = RoutingPolicy(routers=[router(r".*orders.*", "orders")], others=default)
    mapping = TopicMapping(
        flow=Flow("A", "B"), policy=policy, topic_filter=TopicFilter(["orders.*"], [])
    )

    assert set(plan_flow({"orders": 1, "orders-2": 1}, {}, mapping).refused) == {
        "orders", "orders-2",
    }  # fmt: skip
