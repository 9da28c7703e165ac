"""Remote topics: created and grown one by one, and retried after growing pauses."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from eos_mirror.core.filters import TopicFilter
from eos_mirror.core.plan import FlowPlan
from eos_mirror.core.retries import FIRST_PAUSE_S
from eos_mirror.core.topic_configs import LIMIT, ConfigFilter, Entry, Origin
from eos_mirror.driver.remote_topics import RemoteTopics
from eos_mirror.errors import ConfigError, MirrorError, NotAuthorized, RetriableError, TooFewBrokers
from tests.driver.fakes import Events, FakeClusters, denied, entry, flow_of, plan_of

RULES = ConfigFilter(names=TopicFilter([".*"], ["secret.*"]), keeps_defaults=False)
FULL = MirrorError("create A.orders: INVALID_REPLICATION_FACTOR")


class Stage:
    """Remote topics of a flow, with a clock that a test moves."""

    def __init__(self, folder: Path, keys: Mapping[str, object]) -> None:
        self.clusters, self.events, self.now_s = FakeClusters(), Events(), 100.0
        self.clusters.source.counts = {"orders": 2, "users": 1}
        self.source, self.target = self.clusters.source, self.clusters.target
        self.topics = RemoteTopics(
            flow_of(folder, keys),
            self.clusters.clients,
            on_event=self.events,
            now=lambda: self.now_s,
        )

    @property
    def plan(self) -> FlowPlan:
        """The plan for the present topics."""
        return plan_of(self.source.counts, self.target.counts)

    def settle(self, **known: int) -> FlowPlan:
        """Create and grow what the plan needs."""
        return self.topics.settle(self.plan, RULES, known=known, internal={})


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Two topics on the source, and none on the target."""
    return Stage(tmp_path, {})


def mirrored(plan: FlowPlan) -> dict[str, int]:
    """Return the mirrored partitions by source topic."""
    return {route.source_topic: route.partitions for route in plan.routes}


def test_a_copy_is_created_with_room_for_every_record_of_its_topic(stage: Stage) -> None:
    """The limit is copied even if it is a default, and the target never changes timestamps."""
    stage.source.entries["orders"] = {
        LIMIT: Entry(value="2000", origin=Origin.DEFAULT),
        "retention.ms": entry(7),
        "segment.ms": Entry(value="9", origin=Origin.DEFAULT),
        "secret.entry": entry("x"),
        "message.timestamp.type": entry("LogAppendTime"),
    }

    stage.settle()

    created = stage.target.created["A.orders"]
    assert (created.partitions, created.replication_factor) == (2, 1)
    assert created.config == {
        LIMIT: "2000",
        "retention.ms": "7",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": str(2**63 - 1),
        "message.timestamp.before.max.ms": str(2**63 - 1),
    }


def test_the_brokers_choose_the_replication_factor_if_the_configuration_does_not(
    tmp_path: Path,
) -> None:
    """`replication.factor = -1`."""
    stage = Stage(tmp_path, {"replication.factor": -1})
    stage.settle()

    assert stage.target.created["A.orders"].replication_factor is None


def test_topics_are_created_before_the_brokers_are_asked_and_then_reported(stage: Stage) -> None:
    """The tasks may subscribe only when every broker knows every partition."""
    plan = stage.settle()

    assert mirrored(plan) == {"orders": 2, "users": 1}
    assert [what for what, names in stage.target.requests if names][-2:] == ["create", "wait"]
    assert stage.target.requests[-1] == ("wait", ("A.orders", "A.users"))
    assert stage.events == [
        ("topic.created", {"topic": "A.orders", "partitions": 2}),
        ("topic.created", {"topic": "A.users", "partitions": 1}),
    ]
    stage.settle(orders=2, users=1)
    assert stage.target.requests[-1][0] != "wait", "they are known already"


def test_a_refused_topic_holds_up_no_other_and_is_retried_after_pauses(stage: Stage) -> None:
    """Each try is a request to the controller, so the pauses grow; a reload ends them."""
    stage.target.refused = {"A.orders": FULL}

    def tries() -> int:
        return sum("A.orders" in names for what, names in stage.target.requests if what == "create")

    plan = stage.settle()
    assert mirrored(plan) == {"users": 1}
    assert str(FULL) in plan.refused["orders"]
    stage.now_s += FIRST_PAUSE_S / 2
    assert str(FULL) in stage.settle().refused["orders"]
    assert tries() == 1
    stage.now_s += FIRST_PAUSE_S
    stage.settle()
    assert tries() == 2
    stage.now_s += FIRST_PAUSE_S
    stage.settle()
    assert tries() == 2, "the second pause is longer"
    stage.topics.reset()
    stage.target.refused = {}
    assert mirrored(stage.settle()) == {"orders": 2, "users": 1}


def test_a_copy_that_does_not_grow_is_mirrored_with_the_partitions_that_it_has(
    stage: Stage,
) -> None:
    """A refused growth concerns only the new partitions; one that succeeds is reported."""
    stage.target.counts = {"A.orders": 1, "A.users": 1}
    stage.target.refused = {"A.orders": FULL}

    plan = stage.settle()

    assert mirrored(plan) == {"orders": 1, "users": 1}
    assert "partitions from 1 on are not mirrored" in plan.refused["orders"]
    stage.target.refused = {}
    stage.topics.reset()
    assert mirrored(stage.settle()) == {"orders": 2, "users": 1}
    assert stage.events == [("topic.grown", {"topic": "A.orders", "partitions": 2})]


def test_a_topic_that_some_broker_does_not_know_keeps_its_known_partitions(stage: Stage) -> None:
    """It is waited for once; later it is only checked, so that it does not delay the others."""
    stage.target.counts = {"A.orders": 1, "A.users": 1}
    stage.target.unknown = {"A.orders"}
    assert mirrored(stage.settle(orders=1, users=1)) == {"orders": 1, "users": 1}
    assert stage.target.requests[-1] == ("wait", ("A.orders",))

    stage.settle(orders=1, users=1)
    assert stage.target.requests[-1] == ("check", ("A.orders",))
    stage.target.unknown = set()
    assert mirrored(stage.settle(orders=1, users=1)) == {"orders": 2, "users": 1}


def test_an_internal_topic_that_some_broker_does_not_know_ends_the_start(stage: Stage) -> None:
    """No task of the flow can run without it."""
    stage.target.unknown = {"claims"}
    with pytest.raises(RetriableError, match="does not know claims yet"):
        stage.topics.settle(stage.plan, RULES, known={}, internal={"claims": 1})


def test_a_rehearsal_writes_nothing_and_finds_what_would_be_refused(stage: Stage) -> None:
    """Also a topic that was just deleted, and a copy that exists and may not be described."""
    plan = plan_of({"gone": 1, "orders": 2, "users": 3, "wide": 1}, {"A.users": 1})
    stage.source.counts = {"orders": 2, "users": 3, "wide": 1}
    stage.target.counts, stage.target.hidden = {"A.users": 1, "A.orders": 2}, {"A.orders"}
    stage.target.refused = {"A.wide": FULL, "A.users": FULL}

    rehearsed = stage.topics.rehearse(plan, RULES)

    assert mirrored(rehearsed) == {"users": 1}
    assert "was just deleted on A" in rehearsed.refused["gone"]
    assert "DESCRIBE on A.orders (B) is not granted" in rehearsed.refused["orders"]
    assert stage.target.writes == []
    assert stage.target.counts == {"A.users": 1, "A.orders": 2}


def test_too_few_brokers_for_every_topic_are_a_fault_of_the_configuration(stage: Stage) -> None:
    """The key is named; with a copy that exists the flow starts, and the others are refused."""
    wide = TooFewBrokers("create A.orders: INVALID_REPLICATION_FACTOR")
    stage.target.refused = {"A.orders": wide, "A.users": wide}
    with pytest.raises(ConfigError, match=r"Set replication\.factor to at most"):
        stage.topics.rehearse(stage.plan, RULES)

    stage.target.counts["A.users"] = 1
    assert mirrored(stage.topics.rehearse(stage.plan, RULES)) == {"users": 1}


def test_a_right_that_is_missing_for_every_topic_stops_the_flow(stage: Stage) -> None:
    """A right that is missing for one of them excludes only that one."""
    stage.target.refused = {"A.orders": denied("create A.orders")}
    assert mirrored(stage.topics.rehearse(stage.plan, RULES)) == {"users": 1}

    stage.target.refused["A.users"] = denied("create A.users")
    with pytest.raises(NotAuthorized):
        stage.topics.rehearse(stage.plan, RULES)
