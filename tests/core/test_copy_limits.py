"""Which topics are refused because their copies cannot accept their records."""

from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.copy_limits import (
    ConfigSync,
    find_compacted_copies,
    refuse_small_limits,
)
from eos_mirror.core.filters import TopicFilter
from eos_mirror.core.flow import Flow
from eos_mirror.core.plan import FlowPlan, TopicMapping, plan_flow
from eos_mirror.core.policy import replication_policy
from eos_mirror.core.topic_configs import LIMIT, POLICY, ConfigFilter

WAY = TopicMapping(
    flow=Flow("A", "B"),
    policy=replication_policy("DefaultReplicationPolicy"),
    topic_filter=TopicFilter([".*"], []),
)


def plan_of(*topics: str) -> FlowPlan:
    """Return a plan for topics with one partition each, and an empty target."""
    return plan_flow(dict.fromkeys(topics, 1), {}, WAY)


def sync_of(*excluded: str, is_on: bool = True) -> ConfigSync:
    """Return the rules of a configuration that excludes these entries."""
    names = TopicFilter([".*"], excluded)
    return ConfigSync(
        rules=ConfigFilter(names=names, keeps_defaults=False),
        is_on=is_on,
        filter_key="config.properties.exclude",
    )


def limit(value: int) -> dict[str, str]:
    """Return a topic configuration with this message limit."""
    return {LIMIT: str(value)}


def reasons(sync: ConfigSync, *, there: int, denied: bool = False) -> list[str]:
    """Return why a topic with a limit of 2000 bytes is refused if its copy has this limit."""
    found = refuse_small_limits(
        plan_of("t"),
        sync,
        source={"t": limit(2000)},
        remote={"A.t": limit(there)},
        denied={"A.t": "not authorized"} if denied else {},
    )
    return list(found.values())


def test_a_smaller_limit_refuses_its_topic_unless_the_flow_raises_it() -> None:
    """The reason names both limits, why the flow does not raise the limit, and the fix."""
    takes = "A.t accepts messages of 1000 bytes, t of 2000, and"
    raised = "Set max.message.bytes=2000 on A.t"
    assert reasons(sync_of(), there=1000) == []
    assert reasons(sync_of(LIMIT), there=1000) == [
        f"{takes} config.properties.exclude excludes max.message.bytes. {raised}, or do not "
        f"exclude it."
    ]
    assert reasons(sync_of(is_on=False), there=1000) == [
        f"{takes} sync.topic.configs.enabled = false. {raised}, or sync.topic.configs.enabled = "
        f"true."
    ]
    assert reasons(sync_of(), there=1000, denied=True) == [
        f"{takes} B refuses to change that (not authorized). {raised}."
    ]


@given(st.integers(1, 3000), st.booleans(), st.booleans(), st.booleans())
def test_only_a_copy_with_less_room_is_refused(
    there: int, excluded: bool, is_on: bool, denied: bool
) -> None:
    """A topic is not refused if the limit of its copy is large enough or the flow raises it."""
    sync = sync_of(*([LIMIT] if excluded else []), is_on=is_on)
    stays = excluded or denied or not is_on
    assert bool(reasons(sync, there=there, denied=denied)) == (there < 2000 and stays)


def test_other_topics_are_not_refused_with_it() -> None:
    """Only the topic with the small limit is refused, not topics whose copy is unknown."""
    plan = plan_of("small", "large", "unknown")
    source = dict.fromkeys(("small", "large", "unknown"), limit(2000))
    found = refuse_small_limits(
        plan,
        sync_of(LIMIT),
        source=source,
        remote={"A.small": limit(1999), "A.large": limit(2000)},
    )
    assert found.keys() == {"small"}


def test_a_copy_that_alone_stays_compacted_is_reported() -> None:
    """
    A compacted copy is reported unless the sync will change it or its source topic is compacted.
    """
    plan = plan_of("both", "none", "one")
    source = {"both": {POLICY: "compact"}, "none": {POLICY: "delete"}, "one": {POLICY: "delete"}}
    remote = {
        "A.both": {POLICY: "compact"},
        "A.none": {POLICY: "delete"},
        "A.one": {POLICY: "compact,delete"},
    }
    (found,) = find_compacted_copies(plan, sync_of(POLICY), source=source, remote=remote)
    assert found.startswith("A->B: A.one is compacted and one is not")
    for sync, expected in ((sync_of(is_on=False), (found,)), (sync_of(LIMIT), ())):
        assert find_compacted_copies(plan, sync, source=source, remote=remote) == expected
