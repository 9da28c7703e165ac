"""Topics of the target follow those of the source; no copy is written or created by mistake."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.retries import FIRST_PAUSE_S
from eos_mirror.core.topic_configs import LIMIT
from eos_mirror.driver import history, topic_sync
from eos_mirror.driver.topic_sync import LET_GO_WITHIN_S, TopicSync
from eos_mirror.errors import ConfigError, MirrorError, NotAuthorized
from tests.driver.fakes import (
    FLOW,
    ORDERS,
    REMOTE,
    Events,
    FakeClusters,
    denied,
    entry,
    flow_of,
    start_record,
)

FULL = MirrorError("create A.orders: INVALID_REPLICATION_FACTOR")
INTERNAL = (FLOW.claims_topic, FLOW.offset_map_topic)


class Stage:
    """The topic sync of one flow, with a clock that a test moves."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, keys: Mapping[str, object]) -> None:
        self.now_s = 100.0
        patch.setattr(topic_sync, "time", SimpleNamespace(monotonic=lambda: self.now_s))
        patch.setattr(history, "DECIDED_WITHIN", timedelta(0))
        self.clusters, self.events = FakeClusters(), Events()
        self.source, self.target = self.clusters.source, self.clusters.target
        self.source.counts = {"orders": 1}
        self.settings = flow_of(folder, keys)
        self.sync = TopicSync(self.settings, self.clusters.clients, on_event=self.events)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """One topic on the source, and nothing on the target."""
    return Stage(tmp_path, monkeypatch, {})


@pytest.mark.parametrize(
    ("is_exactly_once", "internal"), [("true", INTERNAL), ("false", INTERNAL[:1])]
)
def test_internal_topics_are_created_first_and_known_everywhere_before_the_tasks_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_exactly_once: str, internal: tuple[str, ...]
) -> None:
    """Compacted, and never with an unclean leader: a lost claim could not be fenced."""
    stage = Stage(tmp_path, monkeypatch, {"transaction.producer": is_exactly_once})

    stage.sync.begin()

    assert stage.target.writes == [("create", internal), ("create", ("A.orders",))]
    assert ("wait", ("A.orders", *internal)) in stage.target.requests
    assert stage.sync.partitions == {ORDERS: REMOTE}
    for name in internal:
        config = stage.target.created[name].config
        assert config["cleanup.policy"] == "compact"
        assert config["unclean.leader.election.enable"] == "false"


def test_an_internal_topic_that_is_refused_stops_the_flow(stage: Stage) -> None:
    """Before any remote topic is created. A missing right stays a missing right."""
    stage.target.refused = {FLOW.claims_topic: FULL}
    with pytest.raises(ConfigError, match=r"internal\.topic\.replication\.factor"):
        stage.sync.begin()
    stage.target.refused = {FLOW.claims_topic: denied("create")}
    with pytest.raises(NotAuthorized):
        stage.sync.begin()

    assert "A.orders" not in stage.target.counts


def test_new_topics_and_partitions_are_mirrored_while_the_flow_runs(stage: Stage) -> None:
    """`routes` and `partitions` are those of the last sync."""
    stage.sync.begin()
    stage.source.counts = {"orders": 2, "users": 1}

    stage.sync.follow()

    assert stage.sync.routes == {"orders": "A.orders", "users": "A.users"}
    assert stage.sync.partitions.keys() == {
        ORDERS,
        TopicPartition("orders", 1),
        TopicPartition("users", 0),
    }


def test_a_refused_topic_is_reported_once_until_its_reason_changes(stage: Stage) -> None:
    """The other topics are mirrored meanwhile."""
    stage.source.counts["users"] = 1
    stage.target.refused = {"A.orders": FULL}
    stage.sync.begin()
    stage.sync.follow()
    stage.target.refused = {"A.orders": denied("create A.orders")}
    stage.sync.take(stage.settings)  # as a reload of the configuration: the pause is over
    stage.sync.follow()

    first, second = (event["reason"] for event in stage.events.of("topic.refused"))
    assert str(FULL) in first
    assert "AUTHORIZATION" in second
    assert stage.sync.routes == {"users": "A.users"}


def test_a_deleted_source_topic_is_reported_once_and_its_copy_is_kept(stage: Stage) -> None:
    """A topic whose DESCRIBE was withdrawn is not deleted; it resumes with the right."""
    stage.source.counts["users"] = 1
    stage.sync.begin()
    del stage.source.counts["orders"]
    stage.source.hidden = {"users"}
    for _ in range(2):
        stage.sync.follow()

    assert stage.events.of("topic.deleted") == [{"topic": "orders", "remote": "A.orders"}]
    assert stage.sync.deleted == {"orders"}
    assert stage.target.counts["A.orders"] == 1
    assert "DESCRIBE on users (A) is not granted any more" in stage.sync.refused["users"]
    assert stage.sync.routes == {}
    stage.source.hidden = set()
    stage.clusters.reader.ends = {TopicPartition("A.users", 0): 9}
    stage.sync.follow()
    assert stage.sync.routes == {"users": "A.users"}


def test_a_deleted_copy_is_not_created_again(stage: Stage) -> None:
    """It would lack its beginning. Once its positions are gone, too, it may be created later."""
    stage.sync.begin()
    del stage.target.counts["A.orders"]
    stage.sync.follow()
    assert "the copy was deleted on B" in stage.sync.refused["orders"]
    stage.clusters.reader.started = {REMOTE: start_record()}
    stage.now_s += LET_GO_WITHIN_S
    stage.sync.follow()
    assert "A.orders" not in stage.target.counts

    stage.clusters.reader.started = {}
    stage.now_s += 2 * LET_GO_WITHIN_S - 1
    stage.sync.follow()
    assert "A.orders" not in stage.target.counts, "a task may still write the deleted copy"
    stage.now_s += 1
    stage.sync.follow()
    assert stage.target.counts["A.orders"] == 1


def test_an_undecided_offset_map_holds_up_only_what_this_run_mirrored(stage: Stage) -> None:
    """A new topic is created although a transaction is open on the map."""
    stage.sync.begin()
    stage.target.hidden, stage.clusters.reader.undecided = {"A.orders"}, True
    stage.sync.follow()
    assert stage.sync.routes == {}, "the copy may not be described"
    stage.target.hidden = set()
    del stage.target.counts["A.orders"]
    stage.source.counts["users"] = 1

    stage.sync.follow()

    assert "the copy was deleted" in stage.sync.refused["orders"]
    assert stage.sync.routes == {"users": "A.users"}


def test_a_foreign_copy_of_a_new_topic_is_not_written(stage: Stage) -> None:
    """It is judged again after a pause. A copy that the check has judged is not judged again."""
    stage.sync.begin()
    stage.source.counts |= {"users": 1, "sales": 1}
    stage.target.counts |= {"A.users": 1, "A.sales": 1}
    users = TopicPartition("A.users", 0)
    stage.clusters.reader.ends = {users: 9, TopicPartition("A.sales", 0): 9}
    stage.sync.trust(["orders", "sales"])

    stage.sync.follow()
    assert "records that this flow never wrote" in stage.sync.refused["users"]
    assert stage.sync.routes.keys() == {"orders", "sales"}
    stage.clusters.reader.ends = {}
    stage.sync.follow()
    assert "users" in stage.sync.refused
    stage.now_s += FIRST_PAUSE_S
    stage.sync.follow()
    assert stage.sync.routes.keys() == {"orders", "sales", "users"}


def test_a_topic_that_another_flow_writes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first flow to see the topic writes it."""
    identity = {"replication.policy.class": "IdentityReplicationPolicy"}
    first = Stage(tmp_path, monkeypatch, identity)
    first.sync.begin()
    keys = {**identity, "clusters": "A, B, C", "C.bootstrap.servers": "127.0.0.1:9"}
    settings = flow_of(tmp_path, {**keys, "A->B.enabled": "false", "C->B.enabled": "true"})
    second = TopicSync(settings, first.clusters.clients, on_event=first.events)
    second.others = [first.sync]

    plan = second.plan({"orders": 1, "users": 1}, first.target.counts)

    assert settings.flow == Flow("C", "B")
    assert [route.source_topic for route in plan.routes] == ["users"]
    assert "A->B writes it" in plan.refused["orders"]


def test_a_topic_that_is_mirrored_already_continues_with_a_smaller_limit(stage: Stage) -> None:
    """A record that does not fit stops its partition. A new topic is refused from the start."""
    stage.sync.begin()
    stage.source.counts["users"] = 1
    for topic in ("orders", "users"):
        stage.source.entries[topic] = {LIMIT: entry(2000)}
        stage.target.entries[f"A.{topic}"] = {LIMIT: entry(1000)}
    stage.target.refused = {name: denied("alter") for name in ("A.orders", "A.users")}
    stage.target.counts["A.users"] = 1

    stage.sync.follow()

    assert stage.sync.routes.keys() == {"orders"}
    assert "accepts messages of 1000 bytes" in stage.sync.refused["users"]


def test_configurations_are_synced_where_they_differ(stage: Stage) -> None:
    """Each change and each failure is an event; a topic without a difference is left alone."""
    stage.source.counts |= {"users": 1, "sales": 1}
    stage.sync.begin()
    stage.events.clear()
    stage.source.entries = {name: {"retention.ms": entry(7)} for name in ("orders", "users")}
    stage.target.entries = {"A.users": {"retention.ms": entry(7)}}
    stage.source.undescribed = {"sales": denied("describe sales")}

    stage.sync.follow_configs()
    stage.sync.follow_configs()

    assert stage.events.of("topic.altered") == [
        {"topic": "A.orders", "set": {"retention.ms": "7"}, "deleted": []}
    ]
    assert {event["topic"] for event in stage.events.of("topic.alter-failed")} == {"A.sales"}
