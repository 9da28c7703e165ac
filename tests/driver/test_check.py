"""Whether a flow may start: all faults together, and nothing is written to a cluster."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.side import Side
from eos_mirror.core.topic_configs import LIMIT, POLICY
from eos_mirror.driver import check
from eos_mirror.driver.check import check_flow
from eos_mirror.driver.cluster_facts import FlowFacts
from eos_mirror.driver.coordinator_check import Asked, Coordinators
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import ConfigError, SourceUnavailable, UnsafeError
from eos_mirror.kafka.coordinators import GROUPS, TRANSACTIONS
from eos_mirror.kafka.groups import GroupMember
from eos_mirror.settings.clients import deployment
from tests.driver.fakes import FLOW, REMOTE, Events, FakeClusters, denied, entry, flow_of

AT_LEAST_ONCE = {"transaction.producer": "false"}
OWN_LIMITS = {"config.properties.exclude": f"{LIMIT}, {POLICY}"}


class Stage:
    """A flow that was never started, from one topic to an empty target."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.clusters, self.events = FakeClusters(), Events()
        self.source, self.target = self.clusters.source, self.clusters.target
        self.source.counts = {"orders": 1}
        self.clusters.install(patch)

    def check(
        self, keys: Mapping[str, object] | None = None, *, creates_nothing: bool = False
    ) -> FlowFacts:
        """Check the flow."""
        settings, clusters = flow_of(self.folder, keys), self.clusters.clients
        topics = TopicSync(settings, clusters, on_event=self.events)
        return check_flow(
            settings,
            clusters,
            topics=topics,
            on_event=self.events,
            creates_nothing=creates_nothing,
        )

    def faults(self, keys: Mapping[str, object] | None = None) -> list[str]:
        """Check the flow, and return why its configuration must be fixed."""
        with pytest.raises(ConfigError) as caught:
            self.check(keys)
        return list(caught.value.faults)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Every right is granted."""
    return Stage(tmp_path, monkeypatch)


def test_a_check_writes_nothing_and_returns_the_plan(stage: Stage) -> None:
    """The target is only asked whether it would create the internal and remote topics."""
    plan = stage.check().plan

    assert [route.remote_topic for route in plan.to_create] == ["A.orders"]
    asked = [names for what, names in stage.target.requests if what == "validate" and names]
    assert asked == [(FLOW.claims_topic, FLOW.offset_map_topic), ("A.orders",)]
    assert stage.source.writes == stage.target.writes == []
    assert stage.events == []


def test_a_check_asks_no_coordinator_whose_topic_would_be_created(stage: Stage) -> None:
    """A start asks all of them: it needs them anyway."""
    every = (
        Asked(Side.SOURCE, GROUPS),
        Asked(Side.TARGET, GROUPS),
        Asked(Side.TARGET, TRANSACTIONS),
    )
    missing = Coordinators(missing=frozenset(every), faults=(), outages=())
    stage.clusters.coordinators = missing
    stage.clusters.may_write_id = False
    stage.target.counts = {"A.orders": 1}

    stage.check(creates_nothing=True)

    assert stage.clusters.asked_groups == set()
    assert len(stage.faults()) == 1
    assert stage.clusters.asked_groups == {FLOW.source_group, FLOW.shadow_group}


def test_an_outage_of_a_coordinator_is_a_fault_of_a_check_and_a_warning_of_a_start(
    stage: Stage,
) -> None:
    """A start waits for its end."""
    down = ("A->B: __transaction_state on B has no leader",)
    stage.clusters.coordinators = Coordinators(missing=frozenset(), faults=(), outages=down)

    with pytest.raises(ConfigError, match="has no leader"):
        stage.check(creates_nothing=True)

    stage.check()
    assert stage.events == [("flow.warning", {"reason": down[0]})]


def test_a_coordinator_that_can_never_work_refuses_the_start(stage: Stage) -> None:
    """Waiting does not help: a setting of the brokers must be changed."""
    fault = "A->B: __transaction_state on B does not exist and cannot be used"
    stage.clusters.coordinators = Coordinators(missing=frozenset(), faults=(fault,), outages=())

    assert stage.faults() == [fault]


def test_all_faults_are_reported_together(stage: Stage) -> None:
    """Both groups, transactional ids, the timeout and internal topics: one line for each."""
    stage.clusters.closed_groups = {FLOW.source_group, FLOW.shadow_group}
    stage.clusters.may_write_id = False
    stage.target.counts = {FLOW.claims_topic: 1}
    stage.target.denied = {FLOW.claims_topic: {AclOperation.WRITE}}

    internal, source, shadow, ids, timeout = stage.faults({"transaction.timeout.ms": 900_001})

    assert f"WRITE on topic {FLOW.claims_topic} (B)" in internal
    assert f"READ on group {FLOW.source_group} (A)" in source
    assert f"READ on group {FLOW.shadow_group} (B)" in shadow
    assert f"transactional ids {FLOW.name}.* (B)" in ids
    assert "Set it to at most 900000" in timeout


def test_at_least_once_needs_no_rights_of_transactions(stage: Stage) -> None:
    """Only the source group is committed to."""
    stage.clusters.closed_groups = {FLOW.shadow_group}
    stage.clusters.may_write_id = False
    assert stage.check(AT_LEAST_ONCE).plan.routes

    stage.clusters.closed_groups = {FLOW.source_group}
    (fault,) = stage.faults(AT_LEAST_ONCE)
    assert FLOW.source_group in fault


@pytest.mark.parametrize(
    ("timeout_ms", "longest", "is_fault"),
    [
        (900_000, timedelta(minutes=15), False),
        (900_001, timedelta(minutes=15), True),
        (900_001, None, False),
        (60_000, timedelta(seconds=1), False),
    ],
)
def test_a_transaction_timeout_must_be_one_that_the_target_allows(
    stage: Stage, timeout_ms: int, longest: timedelta | None, is_fault: bool
) -> None:
    """A limit that is not known, and the default timeout of Kafka's clients, are no fault."""
    stage.clusters.longest_transaction = longest
    keys = {"transaction.timeout.ms": timeout_ms}
    if is_fault:
        assert len(stage.faults(keys)) == 1
    else:
        stage.check(keys)


@pytest.mark.parametrize(
    ("timeout_ms", "is_fault"),
    [(5_999, True), (6_000, False), (1_800_000, False), (1_800_001, True)],
)
def test_a_session_timeout_must_be_one_that_the_source_allows(
    stage: Stage, timeout_ms: int, is_fault: bool
) -> None:
    """The brokers refuse every member with another one: the tasks would restart without end."""
    keys = {"session.timeout.ms": timeout_ms}
    assert len(stage.faults(keys)) == 1 if is_fault else stage.check(keys)

    stage.clusters.session_range = None
    assert stage.check(keys)


def test_a_danger_is_reported_after_the_faults_are_fixed(stage: Stage) -> None:
    """Faults exit with another code. Warnings are logged in both cases."""
    stage.clusters.shadow_members = [GroupMember(client_id="consumer", host="h")]
    stage.clusters.may_write_id = False
    assert len(stage.faults({"topics": "orders, missing"})) == 1

    stage.clusters.may_write_id = True
    with pytest.raises(UnsafeError, match="must have none"):
        stage.check({"topics": "orders, missing"})
    assert stage.events.names == ["flow.warning"] * 2
    assert "matches missing of `topics`" in stage.events[0][1]["reason"]


def test_members_of_an_earlier_run_are_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stay in the group until their session ends. If they do not leave, they are a danger."""
    theirs = [GroupMember(client_id="theirs", host="h")]
    ours = [GroupMember(client_id=f"{deployment(flow_of(stage.folder))}|0", host="h")]
    stage.clusters.readers = [theirs, theirs, ours]
    assert stage.check().source_members == ours

    stage.clusters.readers = [theirs]
    monkeypatch.setattr(check, "SESSION_MARGIN", timedelta(0))
    stage.clusters.session_range = None
    with pytest.raises(UnsafeError, match="another configuration"):
        stage.check({"session.timeout.ms": 1})


def test_a_topic_that_cannot_be_mirrored_is_excluded_and_reported(stage: Stage) -> None:
    """The flow starts with the others; each topic is reported with its reason."""
    stage.source.counts |= {"users": 1, "sales": 1}
    stage.target.counts = {"A.orders": 1}
    stage.clusters.reader.ends = {REMOTE: 9}
    stage.target.refused = {"A.users": denied("create A.users")}

    plan = stage.check().plan

    assert [route.source_topic for route in plan.routes] == ["sales"]
    reported = {event["topic"]: event["reason"] for event in stage.events.of("topic.refused")}
    assert "records that this flow never wrote" in reported["orders"]
    assert "TOPIC_AUTHORIZATION_FAILED" in reported["users"]
    assert len(stage.events.of("topic.refused")) == 2


def test_a_second_check_reports_only_what_has_changed(stage: Stage) -> None:
    """A run that stood by checks again before it leads."""
    stage.target.counts = {"A.orders": 1}
    stage.clusters.reader.ends = {REMOTE: 9}  # records of someone else
    settings, clusters = flow_of(stage.folder), stage.clusters.clients
    topics = TopicSync(settings, clusters, on_event=stage.events)
    for _ in range(2):
        check_flow(settings, clusters, topics=topics, on_event=stage.events)

    assert len(stage.events.of("topic.refused")) == 1


def test_a_copy_that_keeps_a_smaller_limit_is_excluded(stage: Stage) -> None:
    """Of a new copy, it is the limit of the brokers; the copy is created nevertheless."""
    stage.source.counts["users"] = 1
    stage.source.entries = {name: {LIMIT: entry(2000)} for name in ("orders", "users")}
    stage.target.counts, stage.clusters.largest_message = {"A.users": 1}, 1000
    stage.target.entries = {"A.users": {LIMIT: entry(2000)}}
    assert len(stage.check().plan.routes) == 2

    plan = stage.check(OWN_LIMITS).plan

    assert [route.source_topic for route in plan.routes] == ["users"]
    assert [route.source_topic for route in plan.to_create] == ["orders"]
    assert "accepts messages of 1000 bytes" in plan.refused["orders"]


def test_a_copy_that_stays_compacted_is_a_warning(stage: Stage) -> None:
    """It loses records that its source topic keeps."""
    stage.source.entries = {"orders": {POLICY: entry("delete")}}
    stage.target.counts = {"A.orders": 1}
    stage.target.entries = {"A.orders": {POLICY: entry("compact")}}

    stage.check(OWN_LIMITS)

    (warning,) = stage.events.of("flow.warning")
    assert "A.orders is compacted and orders is not" in warning["reason"]


def test_a_missing_right_is_a_fault_and_no_answer_is_none(stage: Stage) -> None:
    """A person grants a right; an outage ends by itself."""
    stage.clusters.mode.noted = DeliveryMode.EXACTLY_ONCE
    stage.target.refused = {"A.orders": denied("create A.orders")}
    (fault,) = stage.faults()
    assert "create A.orders: TOPIC_AUTHORIZATION_FAILED. Grant it with kafka-acls.sh." in fault

    stage.source.down = SourceUnavailable("no answer")
    with pytest.raises(SourceUnavailable):
        stage.check()
