"""Which facts let a flow start, and which exclude a topic or the whole flow."""

from dataclasses import replace
from typing import Any

import pytest

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.cluster_facts import FlowFacts, RemotePartition
from eos_mirror.driver.preflight import Verdict, judge
from eos_mirror.kafka.groups import GroupMember
from tests.driver.fakes import REMOTE, plan_of

EXACTLY_ONCE, AT_LEAST_ONCE = DeliveryMode.EXACTLY_ONCE, DeliveryMode.AT_LEAST_ONCE
NEW = RemotePartition(remote=REMOTE, has_shadow=False, has_position=False, was_started=False, end=0)
MIRRORED = replace(NEW, has_shadow=True, has_position=True, was_started=True)
FACTS = FlowFacts(
    plan=plan_of({"orders": 1, "users": 1}, {"A.orders": 1}),
    planned_partitions=2,
    source_topics=["orders", "users"],
    source_configs={},
    remote_configs={},
    remote_timestamp_types={},
    partitions=[],
    has_claims_topic=True,
    noted_mode=None,
    shadow_members=[],
    source_members=[],
    missing_rights=[],
    denied={},
    undescribed={},
)


def judged(
    *,
    include: tuple[str, ...] = (".*",),
    mode: DeliveryMode = EXACTLY_ONCE,
    has_company: bool = False,
    **changes: Any,
) -> Verdict:
    """Judge the facts with these changes."""
    facts = replace(FACTS, **changes)
    return judge(facts, include=include, mode=mode, deployment="ours", has_company=has_company)


def member(client_id: str) -> GroupMember:
    """Return a member of a group."""
    return GroupMember(client_id=client_id, host="h")


def test_a_flow_with_nothing_unusual_starts_with_every_topic() -> None:
    """A new topic, and one that was mirrored before."""
    verdict = judged(partitions=[MIRRORED], noted_mode=EXACTLY_ONCE)

    assert verdict == Verdict(faults=(), dangers=(), warnings=(), refused={})


@pytest.mark.parametrize(
    ("partition", "has_company", "is_refused"),
    [
        (NEW, False, False),
        (replace(NEW, end=5), False, True),
        (replace(NEW, end=5), True, False),
        (replace(NEW, end=5, has_position=True), False, False),
        (replace(NEW, end=5, was_started=True), False, False),
    ],
    ids=["empty", "foreign records", "shared topic", "position", "started"],
)
def test_a_copy_with_records_of_others_is_refused(
    partition: RemotePartition, has_company: bool, is_refused: bool
) -> None:
    """Only if nothing shows that this flow wrote it, and it does not share its topics."""
    refused = judged(partitions=[partition], has_company=has_company).refused

    assert bool(refused) is is_refused
    assert refused.keys() <= {"orders"}


@pytest.mark.parametrize("has_company", [False, True])
def test_a_copy_that_is_too_small_is_refused_unless_the_flow_started_it(has_company: bool) -> None:
    """The flow grows its own copies only, whether or not others may write them."""
    plan = plan_of({"orders": 3}, {"A.orders": 1})
    foreign = judged(plan=plan, partitions=[NEW], has_company=has_company)
    ours = judged(plan=plan, partitions=[MIRRORED], has_company=has_company)

    assert "has 1 partition, orders has 3" in foreign.refused["orders"]
    assert not ours.refused


@pytest.mark.parametrize(
    ("noted", "shadow", "mode", "switch"),
    [
        (EXACTLY_ONCE, False, EXACTLY_ONCE, None),
        (EXACTLY_ONCE, True, AT_LEAST_ONCE, "--to mode:alo"),
        (AT_LEAST_ONCE, False, EXACTLY_ONCE, "--from mode:alo"),
        (AT_LEAST_ONCE, True, AT_LEAST_ONCE, None),
        (None, False, AT_LEAST_ONCE, None),
        (None, True, AT_LEAST_ONCE, "--to mode:alo"),
    ],
)
def test_a_flow_that_ran_in_the_other_mode_does_not_start(
    noted: DeliveryMode | None, shadow: bool, mode: DeliveryMode, switch: str | None
) -> None:
    """A shadow offset shows the mode if none was noted. Nothing else is judged then."""
    partitions = [MIRRORED if shadow else NEW]
    verdict = judged(
        mode=mode, noted_mode=noted, partitions=partitions, source_members=[member("theirs")]
    )

    (danger,) = verdict.dangers
    assert (switch in danger) if switch else ("another configuration" in danger)


def test_whatever_could_break_exactly_once_keeps_the_flow_from_starting() -> None:
    """Members of the shadow group, a lost claims topic, tasks of another configuration."""
    verdict = judged(
        partitions=[MIRRORED],
        has_claims_topic=False,
        shadow_members=[member("consumer")],
        source_members=[member("A.B|ours-0"), member("A.B|theirs-0")],
    )

    shadow, claims, rival = verdict.dangers
    assert "must have none" in shadow
    assert "claims.internal is gone" in claims
    assert "A.B|theirs-0" in rival
    assert not judged(partitions=[NEW], has_claims_topic=False).dangers


def test_a_right_that_every_topic_lacks_is_a_fault_of_the_flow() -> None:
    """A topic alone is skipped until the right is granted; the others are mirrored."""
    denied = {"orders": ["WRITE on topic A.orders (B)"]}
    one = judged(denied=denied)
    both = judged(denied=denied, undescribed={"users": "describe users: denied"})
    internal = judged(missing_rights=["WRITE on topic claims (B)"])

    assert not one.faults
    assert "stop until it is granted" in one.warnings[0]
    undescribed, right = both.faults
    assert "describe users: denied. Grant it" in undescribed
    assert f"{denied['orders'][0]}. Grant it" in right
    assert both.refused == {"users": "describe users: denied"}
    assert len(internal.faults) == 1


def test_a_pattern_without_topics_is_a_warning_with_the_likely_topic() -> None:
    """A source without any topic is one warning, not one for each pattern."""
    verdict = judged(include=("Orders", "users"))
    empty = judged(plan=plan_of({}), source_topics=[])

    assert [warning.partition(": ")[2] for warning in verdict.warnings] == [
        "no topic of A matches Orders of `topics`; did you mean orders?"
    ]
    assert len(empty.warnings) == 1
    assert "no topic to mirror yet" in empty.warnings[0]


def test_a_copy_that_replaces_timestamps_is_a_warning() -> None:
    """Kafka's default is not."""
    types = {"A.orders": "LogAppendTime", "A.users": "CreateTime"}
    (warning,) = judged(remote_timestamp_types=types).warnings

    assert "A.orders has message.timestamp.type=LogAppendTime" in warning


def test_one_foreign_partition_is_enough_to_refuse_a_copy() -> None:
    """The reason names the partition, although the flow mirrored another one before."""
    second = replace(NEW, remote=TopicPartition("A.orders", 1), end=9)

    assert "A.orders-1 ends at 9" in judged(partitions=[MIRRORED, second]).refused["orders"]
