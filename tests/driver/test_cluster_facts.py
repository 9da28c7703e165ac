"""Facts of two clusters: positions, rights and members, each assigned to the right topic."""

from datetime import timedelta

import pytest
from confluent_kafka.admin import AclOperation

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.driver.cluster_facts import FlowFacts, RemotePartition, gather, remote_partitions
from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.groups import GroupMember
from eos_mirror.ports import UNSTABLE, ShadowOffset
from tests.driver.fakes import (
    FLOW,
    ORDERS,
    REMOTE,
    FakeClusters,
    denied,
    entry,
    group_offset,
    plan_of,
    start_record,
)

EXACTLY_ONCE, AT_LEAST_ONCE = DeliveryMode.EXACTLY_ONCE, DeliveryMode.AT_LEAST_ONCE


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> FakeClusters:
    """A flow that ran before: `orders` has a copy, `users` has none yet."""
    clusters = FakeClusters()
    clusters.source.counts = {"orders": 1, "users": 2}
    clusters.target.counts = {"A.orders": 1, FLOW.claims_topic: 1}
    clusters.install(monkeypatch)
    return clusters


def gathered(clusters: FakeClusters, *, mode: DeliveryMode = EXACTLY_ONCE) -> FlowFacts:
    """Gather the facts of both clusters."""
    return gather(clusters.clients, plan_of, mode=mode, within=timedelta(seconds=1))


def found(clusters: FakeClusters, mode: DeliveryMode) -> list[RemotePartition]:
    """Return what is known of the partitions of A.orders."""
    plan = plan_of({"orders": 2}, clusters.target.counts)
    return remote_partitions(clusters.clients, plan, clusters.target.counts, mode=mode)


def test_an_exactly_once_partition_continues_from_its_shadow_offset(
    clusters: FakeClusters,
) -> None:
    """Also while the transaction of its first offset is open; its end is then not asked for."""
    with_shadow = RemotePartition(
        remote=REMOTE, has_shadow=True, has_position=True, was_started=True, end=0
    )
    clusters.reader.ends = {REMOTE: 9}
    clusters.shadow_offsets.committed = {REMOTE: group_offset(7)}
    assert found(clusters, EXACTLY_ONCE) == [with_shadow]

    clusters.shadow_offsets.committed = {}
    for shadow in (UNSTABLE, ShadowOffset(position=Position(7), metadata="")):
        clusters.reader.shadows = {REMOTE: shadow}
        assert found(clusters, EXACTLY_ONCE) == [with_shadow]


@pytest.mark.parametrize("was_started", [False, True])
@pytest.mark.parametrize("has_position", [False, True])
def test_an_at_least_once_partition_continues_from_the_source_group(
    clusters: FakeClusters, has_position: bool, was_started: bool
) -> None:
    """A position there is none exactly once; the offset map shows whether the flow started it."""
    clusters.reader.ends = {REMOTE: 9}
    clusters.source_offsets.committed = {ORDERS: group_offset(7)} if has_position else {}
    clusters.reader.started = {REMOTE: start_record()} if was_started else {}

    (partition,) = found(clusters, AT_LEAST_ONCE)
    (exactly_once,) = found(clusters, EXACTLY_ONCE)

    assert (partition.has_position, partition.was_started, partition.end) == (
        has_position,
        was_started,
        9,
    )
    assert not partition.has_shadow
    assert not exactly_once.has_position
    assert exactly_once.was_started is was_started


def test_an_undecided_offset_map_is_not_waited_for(clusters: FakeClusters) -> None:
    """The transaction may belong to a dead task, which only the tasks of this start fence."""
    clusters.reader.undecided, clusters.reader.ends = True, {REMOTE: 9}

    (partition,) = found(clusters, EXACTLY_ONCE)

    assert not partition.was_started


def test_a_partition_without_a_leader_is_not_judged(clusters: FakeClusters) -> None:
    """Its task judges it later; the others are known."""
    clusters.target.counts["A.orders"] = 2
    clusters.reader.silent = {REMOTE}

    assert [one.remote for one in found(clusters, EXACTLY_ONCE)] == [TopicPartition("A.orders", 1)]


def test_the_noted_mode_is_read_only_from_an_existing_claims_topic(clusters: FakeClusters) -> None:
    """Without the topic the flow has no mode, and no reader waits for a missing topic."""
    clusters.mode.noted = AT_LEAST_ONCE
    assert gathered(clusters).noted_mode is AT_LEAST_ONCE

    del clusters.target.counts[FLOW.claims_topic]
    facts = gathered(clusters)
    assert (facts.noted_mode, facts.has_claims_topic) == (None, False)


def test_missing_rights_belong_to_a_source_topic_or_to_the_flow(clusters: FakeClusters) -> None:
    """A copy that does not exist yet lacks none; nor is a topic named that lacks none."""
    clusters.source.counts["sales"] = 1
    clusters.source.denied = {"users": {AclOperation.READ}}
    clusters.target.denied = {
        "A.orders": {AclOperation.WRITE},
        FLOW.claims_topic: {AclOperation.READ},
    }

    facts = gathered(clusters)

    assert facts.denied == {
        "orders": ["WRITE on topic A.orders (B)"],
        "users": ["READ on topic users (A)"],
    }
    assert facts.missing_rights == [f"READ on topic {FLOW.claims_topic} (B)"]


def test_a_topic_that_cannot_be_described_does_not_hide_the_others(clusters: FakeClusters) -> None:
    """The reason is found by source topic, whichever of the two clusters refused."""
    clusters.source.entries = {"orders": {"retention.ms": entry(1)}}
    clusters.source.undescribed = {"users": denied("describe users")}
    clusters.target.undescribed = {"A.orders": denied("describe A.orders")}

    facts = gathered(clusters)

    assert facts.source_configs == {"orders": {"retention.ms": "1"}}
    assert facts.undescribed.keys() == {"orders", "users"}
    assert "describe A.orders" in facts.undescribed["orders"]
    assert facts.planned_partitions == 3


def test_members_are_those_of_each_group_and_nothing_is_written(clusters: FakeClusters) -> None:
    """A cluster that does not answer ends the gathering."""
    task, consumer = (GroupMember(client_id=name, host="h") for name in ("task", "consumer"))
    clusters.readers, clusters.shadow_members = [[task]], [consumer]

    facts = gathered(clusters)

    assert (facts.source_members, facts.shadow_members) == ([task], [consumer])
    assert clusters.source.writes == clusters.target.writes == []
    clusters.target.down = TargetUnavailable("no answer")
    with pytest.raises(TargetUnavailable):
        gathered(clusters)
