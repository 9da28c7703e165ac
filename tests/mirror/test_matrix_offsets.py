"""The failure matrix, bookkeeping: positions and claims that expire, are edited or deleted."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from eos_mirror.testing import KafkaCluster, read_topic, wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.command_line import UNSAFE
from tests.mirror.conftest import Site, make_site
from tests.mirror.surgery import delete_topic, edit_position
from tests.mirror.toolbox import Mirror, mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

FORGETS_IDS = {
    "transactional.id.expiration.ms": 1000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 200,
}
FORGETS_OFFSETS = {"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 500}
A_MINUTE = timedelta(seconds=90)
"""Time for offsets to expire that are retained for a minute."""


def wait_caught_up(site: Site) -> None:
    """Wait until the shadow offsets are at the ends of the source."""
    site.wait_caught_up()


def positions_of(site: Site) -> set[int]:
    """Return the shadow offsets; -1 is none."""
    return set(site.view.positions(site.remote, site.partitions).values())


def assert_exact(site: Site, count: int) -> None:
    """Assert that the copy has this many records, once and in order, with all fields."""
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == count


@pytest.fixture
def forgets_ids(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A target whose transactional ids expire after a second."""
    with KafkaCluster(name="forgets-ids", broker_config=FORGETS_IDS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def forgets_offsets(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A target whose group offsets expire after a minute."""
    with KafkaCluster(name="forgets-offsets", broker_config=FORGETS_OFFSETS) as cluster:
        yield cluster


def test_o1_a_transactional_id_that_expires_while_idle_costs_nothing(
    tmp_path: Path, source_cluster: Cluster, forgets_ids: KafkaCluster
) -> None:
    """The next records are sent once, with the transactional id of a new incarnation."""
    site = make_site(tmp_path, source_cluster, forgets_ids)
    site.produce(400)
    with mirror(site.config()) as running:
        running.wait_for("ready")
        wait_caught_up(site)
        for start in (400, 800):
            wait_until(
                lambda: (
                    site.flow.name not in forgets_ids.tool("TransactionsCommand", "list").stdout
                ),
                within=timedelta(seconds=30),
                what="the target to forget the transactional id",
            )
            site.produce(400, start=start)
            wait_caught_up(site)
        assert running.stop() == 0, running.errors

    assert not running.found("task.failed")
    slow = len(running.found("commit.suspicious"))  # on a busy machine
    assert len(running.found("incarnation.started")) == 3 + slow, "no id was missed"
    assert_exact(site, 1_200)


@dataclass(frozen=True, kw_only=True)
class Sleepers:
    """
    Flows that committed nothing for a minute.

    Attributes:
        idle: Ran all the time, and kept its positions alive.
        stopped: Was stopped cleanly.
        killed: Was killed.
    """

    idle: Site
    stopped: Site
    killed: Site


def mirror_and_kill(site: Site) -> None:
    """Kill the driver and its task before the task can release anything, like a power cut."""
    with mirror(site.config()) as running:
        running.wait_for("ready")
        wait_caught_up(site)
        task = running.pid()
        os.kill(task, signal.SIGSTOP)
        running.kill()
        with suppress(ProcessLookupError):
            os.kill(task, signal.SIGKILL)


@pytest.fixture(scope="module")
def sleepers(
    tmp_path_factory: pytest.TempPathFactory, source_cluster: Cluster, forgets_offsets: KafkaCluster
) -> Sleepers:
    """Three flows after a minute: offsets that were not committed since have expired."""
    idle, stopped, killed = (
        make_site(tmp_path_factory.mktemp(name), source_cluster, forgets_offsets)
        for name in ("idle", "stopped", "killed")
    )
    for site in (idle, stopped, killed):
        site.produce(400)
    with mirror(idle.config(offsets_keepalive_interval_seconds=10)) as running:
        running.wait_for("ready")
        wait_caught_up(idle)  # the offsets of the others are younger and expire later
        mirror_and_kill(killed)
        with mirror(stopped.config(), "--once") as once:
            assert once.wait() == 0, once.errors
        wait_until(
            lambda: positions_of(stopped) == positions_of(killed) == {-1},
            within=A_MINUTE,
            what="the offsets to expire",
        )
        kept = positions_of(idle)
        assert running.stop() == 0, running.errors
    assert kept == {100}, "expired in spite of the keep-alive"
    return Sleepers(idle=idle, stopped=stopped, killed=killed)


def test_o2_idle_partitions_of_a_running_task_are_kept_alive(sleepers: Sleepers) -> None:
    """Their positions outlive the retention of offsets, and the next run resumes from them."""
    sleepers.idle.produce(400, start=400)
    with mirror(sleepers.idle.config(), "--once") as running:
        assert running.wait() == 0, running.errors

    assert_exact(sleepers.idle, 800)


def test_o2_positions_that_expired_after_a_clean_stop_are_rebuilt(sleepers: Sleepers) -> None:
    """The positions are read from the offset map, and no record is doubled or lost."""
    sleepers.stopped.produce(400, start=400)
    with mirror(sleepers.stopped.config(), "--once") as running:
        assert running.wait() == 0, running.errors

    assert_exact(sleepers.stopped, 800)


def test_o2_positions_that_expired_after_a_kill_are_never_made_up(sleepers: Sleepers) -> None:
    """The offset map ends before the copy, so every partition stops and nothing is written."""
    site = sleepers.killed
    site.produce(400, start=400)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 1, running.errors

    stopped = running.found("partition.stopped", cause="PositionLost")
    assert len(stopped) == site.partitions
    assert "the shadow offset is gone" in stopped[0]["reason"]
    assert positions_of(site) == {-1}
    arrived = read_topic(site.target.client_config(), site.remote, partitions=4)
    assert [len(records) for records in arrived] == [100] * 4


def delete_shadow_group(site: Site) -> None:
    """Delete the shadow group with all its positions."""
    group = site.flow.shadow_group
    site.target.admin().delete_consumer_groups([group])[group].result(10)


def test_o2_a_map_that_ends_before_the_copy_does_is_no_position(site: Site) -> None:
    """A map that was written at a clean stop is not used after a killed run mirrored more."""
    site.produce(400)
    with mirror(site.config(), "--once") as first:
        assert first.wait() == 0, first.errors
    site.produce(400, start=400)
    mirror_and_kill(site)
    delete_shadow_group(site)

    with mirror(site.config(), "--once") as last:
        assert last.wait() == 1, last.errors

    stopped = last.found("partition.stopped", cause="PositionLost")
    assert len(stopped) == site.partitions
    assert "does not reach the end" in stopped[0]["reason"]
    assert_exact(site, 800)


@pytest.mark.parametrize(
    "interfere",
    [delete_shadow_group, lambda site: edit_position(site, 1, 7)],
    ids=["group deleted", "offset edited"],
)
def test_o3_positions_changed_under_a_running_task_are_written_again(
    site: Site, interfere: Callable[[Site], None]
) -> None:
    """The next commit of the running task overwrites them, at the latest when it stops."""
    site.produce(400)
    with mirror(site.config()) as running:
        running.wait_for("ready")
        wait_caught_up(site)
        interfere(site)
        site.produce(400, start=400)
        wait_caught_up(site)
        interfere(site)
        assert running.stop() == 0, running.errors
    assert positions_of(site) == {200}

    site.produce(400, start=800)
    with mirror(site.config(), "--once") as again:
        assert again.wait() == 0, again.errors
    assert_exact(site, 1_200)


def kill_the_task(running: Mirror) -> None:
    """Kill the task, so that its successor has to claim every partition again."""
    os.kill(running.pid(), signal.SIGKILL)


def create_claims_topic(site: Site) -> None:
    """Create an empty claims topic with the right settings."""
    site.target.create_topic(site.flow.claims_topic, 1, config={"cleanup.policy": "compact"})


def test_o4_a_flow_whose_claims_topic_is_gone_is_not_started(site: Site) -> None:
    """Without the claims no older writer can be fenced, so nothing is created or written."""
    site.produce(400)
    with mirror(site.config(), "--once") as first:
        assert first.wait() == 0, first.errors
    delete_topic(site.target, site.flow.claims_topic)
    site.produce(400, start=400)

    with mirror(site.config(), "--once") as second:
        assert second.wait() == UNSAFE, (second.errors, second.events)

    assert f"{site.flow.claims_topic} is gone" in second.errors[-1]
    assert site.flow.claims_topic not in site.target.admin().list_topics(timeout=10).topics
    assert positions_of(site) == {100}


def test_o4_a_claims_topic_created_again_between_two_runs_fails_the_task(site: Site) -> None:
    """Each position names the claims topic under which it was committed."""
    site.produce(400)
    with mirror(site.config(), "--once") as first:
        assert first.wait() == 0, first.errors
    delete_topic(site.target, site.flow.claims_topic)
    create_claims_topic(site)
    site.produce(400, start=400)

    with mirror(site.config(), "--once") as second:
        assert second.wait() == 1, (second.errors, second.events)

    (failed,) = second.found("task.failed")
    assert failed["cause"] == "FatalError"
    assert site.flow.claims_topic in failed["reason"]
    assert positions_of(site) == {100}


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "created again"])
def test_o4_a_claims_topic_lost_while_the_flow_runs_fails_the_next_claimer(
    site: Site, *, again: bool
) -> None:
    """A task that cannot read the earlier claims must not write."""
    site.produce(400)
    with mirror(site.config()) as running:
        running.wait_for("ready")
        wait_caught_up(site)
        delete_topic(site.target, site.flow.claims_topic)
        if again:
            create_claims_topic(site)
        kill_the_task(running)
        site.produce(400, start=400)
        failed = running.wait_for("task.failed", within_s=30)
        assert running.wait() == 1, running.errors

    assert site.flow.claims_topic in failed["reason"]
    assert "docs/operations.md" in failed["reason"]
    assert positions_of(site) == {100}, "records were mirrored without the earlier claims"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_o5_a_consumer_with_the_shadow_groups_id_is_refused_at_the_start(
    site: Site, protocol: str
) -> None:
    """The line names the group and the consumer; after the consumer has left, the flow starts."""
    site.produce(400)
    site.target.create_topic(f"{site.topic}-for-the-intruder")
    intruder = Consumer(
        {
            **site.target.client_config(),
            "group.id": site.flow.shadow_group,
            "group.protocol": protocol,
            "client.id": "intruder",
        }
    )
    intruder.subscribe([f"{site.topic}-for-the-intruder"])
    wait_until(
        lambda: intruder.poll(0.1) is None and bool(intruder.assignment()),
        within=timedelta(seconds=20),
        what="the intruder to join",
    )

    with mirror(site.config(), "--once") as refused:
        assert refused.wait() == UNSAFE, (refused.errors, refused.events)
    intruder.close()
    with mirror(site.config(), "--once") as accepted:
        assert accepted.wait() == 0, accepted.errors

    assert site.flow.shadow_group in refused.errors[-1]
    assert "intruder" in refused.errors[-1]
    assert_exact(site, 400)
