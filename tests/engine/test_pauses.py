"""Paused and stopped topics stand still, and continue exactly when they are resumed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.ports import UNSTABLE, ShadowOffset, Unstable
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.schedules import ORDERS, mirror_all, settled
from tests.engine.stage import KEEPALIVE, Process, remote_of

pytestmark = pytest.mark.usefixtures("one_core")

AUDIT = TopicPartition("audit", 0)
TURNS = 120


def order(scenario: CheckedScenario, *paused: str) -> None:
    """Order that these topics are paused, and no others."""
    scenario.stage.order(replace(scenario.stage.orders, paused=paused))


def produce_and_run(scenario: CheckedScenario, process: Process) -> None:
    """Produce a record into every partition, and let the task do what it wants."""
    for partition in scenario.stage.partitions:
        scenario.stage.produce(partition)
    scenario.step(process, TURNS)


def copied(scenario: CheckedScenario, partition: TopicPartition) -> int:
    """Return how many records the copy has."""
    return len(scenario.stage.target.decided_records(remote_of(partition)))


def test_a_paused_topic_stands_still_while_others_continue(scenario: CheckedScenario) -> None:
    """It stays owned and claimed. Resumed, it mirrors what it missed."""
    process = settled(scenario)
    claims = len(scenario.stage.target.live_claims())
    order(scenario, AUDIT.topic)
    scenario.step(process, TURNS)

    produce_and_run(scenario, process)

    assert (copied(scenario, AUDIT), copied(scenario, ORDERS)) == (1, 2)
    report = process.context.reports[-1]
    assert (report.owned, report.paused, report.pending) == (3, (AUDIT.topic,), 0)
    assert len(scenario.stage.target.live_claims()) == claims

    order(scenario)
    mirror_all(scenario, process)
    assert copied(scenario, AUDIT) == 2
    assert process.context.reports[-1].paused == ()
    assert process.actor.error is None


def test_a_task_reports_what_it_owns_when_that_has_changed(scenario: CheckedScenario) -> None:
    """A paused partition is owned. Thousands of names in every report would cost too much."""
    process = settled(scenario)
    order(scenario, AUDIT.topic)
    scenario.step(process, TURNS)
    reports = process.context.reports

    told = [report.holds for report in reports if report.holds is not None]
    assert [held for held in told if held] == [tuple(scenario.stage.partitions)]
    assert len(told) < len(reports)


def test_a_resumed_partition_is_claimed_and_read_again(scenario: CheckedScenario) -> None:
    """Its position in memory is not used."""
    process = settled(scenario)
    order(scenario, AUDIT.topic)
    scenario.step(process, TURNS)

    order(scenario)

    assert scenario.run_to(process, "tombstone")
    assert scenario.run_to(process, "claim")
    assert scenario.run_to(process, "fetch offsets")
    mirror_all(scenario, process)


def test_a_pause_in_a_transaction_waits_for_its_end(scenario: CheckedScenario) -> None:
    """What was read before is committed, and nothing of it is read again."""
    process = settled(scenario)
    scenario.stage.produce(AUDIT)
    assert scenario.run_to(process, "produce")
    order(scenario, AUDIT.topic)

    scenario.step(process, TURNS)

    assert copied(scenario, AUDIT) == 2
    assert process.context.reports[-1].paused == (AUDIT.topic,)


def test_the_position_of_a_paused_partition_is_kept_alive(scenario: CheckedScenario) -> None:
    """The target forgets offsets that are not committed for long."""
    process = settled(scenario)
    order(scenario, AUDIT.topic)
    scenario.step(process, TURNS)
    before = scenario.stage.target.decided_offsets()[remote_of(AUDIT)]

    scenario.stage.clock.advance(2 * KEEPALIVE.total_seconds())
    scenario.step(process, TURNS)

    after = scenario.stage.target.decided_offsets()[remote_of(AUDIT)]
    assert after is not None
    assert before is not None
    assert after.position == before.position
    assert after.metadata != before.metadata, "it was not committed again"


def test_a_task_that_starts_does_not_read_what_is_paused(scenario: CheckedScenario) -> None:
    """A pause survives the process: it is an order, not a state of the task."""
    order(scenario, AUDIT.topic)
    process = scenario.start(0)
    scenario.step(process, TURNS)

    produce_and_run(scenario, process)

    assert (copied(scenario, AUDIT), copied(scenario, ORDERS)) == (0, 2)
    assert process.context.reports[-1].paused == (AUDIT.topic,)
    order(scenario)
    mirror_all(scenario, process)
    assert copied(scenario, AUDIT) == 2


def test_a_rebalance_does_not_resume_a_paused_partition(scenario: CheckedScenario) -> None:
    """After a rebalance every owned partition is read again, except the paused ones."""
    process = settled(scenario)
    order(scenario, AUDIT.topic)
    scenario.step(process, TURNS)
    orders = scenario.stage.orders
    scenario.stage.order(replace(orders, rejoin=orders.rejoin + 1))

    produce_and_run(scenario, process)

    assert (copied(scenario, AUDIT), copied(scenario, ORDERS)) == (1, 2)


def stop(scenario: CheckedScenario, *topics: str) -> None:
    """Order that these topics are stopped, and no others."""
    scenario.stage.order(replace(scenario.stage.orders, stopped_topics=topics))


def test_a_stopped_topic_is_released_while_others_continue(scenario: CheckedScenario) -> None:
    """No task claims it, and its map is written out. Started, it mirrors what it missed."""
    process = settled(scenario)
    claims = len(scenario.stage.target.live_claims())
    stop(scenario, AUDIT.topic)
    scenario.step(process, TURNS)

    produce_and_run(scenario, process)

    assert (copied(scenario, AUDIT), copied(scenario, ORDERS)) == (1, 2)
    report = process.context.reports[-1]
    assert (report.owned, report.stopped_topics, report.pending) == (2, (AUDIT.topic,), 0)
    assert len(scenario.stage.target.live_claims()) == claims - 1

    stop(scenario)
    mirror_all(scenario, process)
    assert copied(scenario, AUDIT) == 2
    assert process.context.reports[-1].owned == 3
    assert process.actor.error is None


def test_the_position_of_a_stopped_partition_is_kept_alive(scenario: CheckedScenario) -> None:
    """A task claims it for one commit, and releases it again."""
    process = settled(scenario)
    stop(scenario, AUDIT.topic)
    scenario.step(process, TURNS)
    before = scenario.stage.target.decided_offsets()[remote_of(AUDIT)]
    claims = len(scenario.stage.target.live_claims())

    scenario.stage.clock.advance(2 * KEEPALIVE.total_seconds())
    produce_and_run(scenario, process)

    after = scenario.stage.target.decided_offsets()[remote_of(AUDIT)]
    assert after is not None
    assert before is not None
    assert after.position == before.position
    assert after.metadata != before.metadata, "it was not committed again"
    assert len(scenario.stage.target.live_claims()) == claims
    assert copied(scenario, AUDIT) == 1


def undecided(process: Process, monkeypatch: pytest.MonkeyPatch) -> set[TopicPartition]:
    """Return a set; the position of a copy in it is undecided when the process asks."""
    hanging: set[TopicPartition] = set()
    ask = process.target.shadow_offsets

    def asked(
        remotes: Sequence[TopicPartition],
    ) -> Mapping[TopicPartition, ShadowOffset | Unstable | None]:
        found = ask(remotes)
        return {remote: UNSTABLE if remote in hanging else at for remote, at in found.items()}

    monkeypatch.setattr(process.target, "shadow_offsets", asked)
    return hanging


def test_a_topic_that_is_started_while_its_position_is_undecided_has_one_claim(
    scenario: CheckedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim of the keep-alive is used. A second one would hide the first, which would stay."""
    process = settled(scenario)
    claims = len(scenario.stage.target.live_claims())
    stop(scenario, AUDIT.topic)
    scenario.step(process, TURNS)
    hanging = undecided(process, monkeypatch)
    hanging.add(remote_of(AUDIT))
    scenario.stage.clock.advance(2 * KEEPALIVE.total_seconds())
    scenario.step(process, TURNS)

    stop(scenario)
    scenario.step(process, TURNS)
    assert len(scenario.stage.target.live_claims()) == claims
    hanging.clear()
    produce_and_run(scenario, process)

    assert copied(scenario, AUDIT) == 2
    assert process.actor.error is None


def test_a_task_that_ends_releases_a_claim_whose_position_is_undecided(
    scenario: CheckedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does so before it leaves the group, where an error would be lost."""
    process = settled(scenario)
    stop(scenario, AUDIT.topic)
    scenario.step(process, TURNS)
    undecided(process, monkeypatch).add(remote_of(AUDIT))
    stop(scenario)
    scenario.step(process, TURNS)
    assert len(scenario.stage.target.live_claims()) == len(scenario.stage.partitions)

    process.context.stop.set()

    assert scenario.run_to(process, "close")
    assert not scenario.stage.target.live_claims()


def test_a_task_that_starts_lets_go_of_what_is_stopped(scenario: CheckedScenario) -> None:
    """A stop survives the process, and so does a topic that was never mirrored."""
    stop(scenario, AUDIT.topic)
    process = scenario.start(0)
    scenario.step(process, TURNS)

    produce_and_run(scenario, process)

    assert (copied(scenario, AUDIT), copied(scenario, ORDERS)) == (0, 2)
    assert process.context.reports[-1].owned == 2
    stop(scenario)
    mirror_all(scenario, process)
    assert copied(scenario, AUDIT) == 2
