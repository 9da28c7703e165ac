"""
Tasks that crash or sleep inside a transaction: rows C3, C6 and C7 of the failure matrix.

The points are those where a task can be stopped: begun (records are about to be sent), flushed
(written, their offsets not sent), committed.
"""

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.entry import environ_for
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.test_fencing import hold_a_writer
from tests.mirror.toolbox import STOPPED, FlowView, Mirror, mirror, state_of

pytestmark = [pytest.mark.brokers, pytest.mark.long]

RECORDS = 20_000
SHORTEST_SESSION_MS = 6_000
"""Brokers refuse shorter ones by default."""

EVERY_POINT = pytest.mark.parametrize("point", ["begun", "flushed", "committed"])
INSIDE = pytest.mark.parametrize("point", ["begun", "flushed"])


def undecided(site: Site, view: FlowView | None = None) -> int:
    """Records and markers on the target that no read_committed reader sees yet."""
    remotes = [TopicPartition(site.remote, p) for p in range(site.partitions)]
    target = (view or site.view).target
    return sum(target.high_watermarks(remotes).values()) - sum(target.ends(remotes).values())


def drain(site: Site, running: Mirror) -> None:
    """Everything that is on the source has arrived, within a minute."""
    try:
        site.view.wait_caught_up(site.topic, site.remote, partitions=site.partitions)
    except TimeoutError as exc:
        positions = site.view.positions(site.remote, site.partitions)
        exc.add_note(f"{positions} {running.events[-20:]} {running.errors[-9:]}")
        raise


def assert_copied(site: Site, count: int) -> None:
    """Every record, once, in order; nothing else, and nothing still undecided."""
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == count
    assert undecided(site) == 0


@EVERY_POINT
def test_c3_a_crash_inside_a_transaction_leaves_nothing_behind(site: Site, point: str) -> None:
    """The successor aborts what was open and goes on from the unchanged shadow offsets."""
    site.produce(RECORDS)
    config = site.config(transaction_boundary_records=2_000)
    with mirror(config, env=environ_for(pause_at=f"{point}:3")) as running:
        task = hold_a_writer(running)
        if point == "flushed":
            assert undecided(site), "the transaction is not open: the test proves nothing"
        os.kill(task, signal.SIGKILL)
        running.wait_for("task.started", count=2)
        drain(site, running)
        assert running.stop() == 0, running.errors
    assert_copied(site, RECORDS)
    assert running.found("incarnation.fenced"), "nobody was fenced: the test proves nothing"


def sleep_through_the_session(site: Site, running: Mirror) -> int:
    """Task 0 stands still until another task has mirrored everything; its process."""
    running.wait_for("partitions.acquired", task=0)  # or the other task has mirrored it all
    site.produce(RECORDS)
    sleeper = hold_a_writer(running)
    drain(site, running)
    assert state_of(sleeper) == STOPPED, "it was ended before it could wake up"
    return sleeper


def wake(sleeper: int) -> None:
    """Let it go on, and wait until it has seen that it is too late."""
    os.kill(sleeper, signal.SIGCONT)
    wait_until(
        lambda: state_of(sleeper) in {None, "Z"},
        within=timedelta(seconds=30),
        what="the woken process to end",
    )


@EVERY_POINT
def test_c6_a_task_that_slept_longer_than_its_session_writes_nothing(
    site: Site, point: str
) -> None:
    """Its partitions are another's by then: it is fenced, ends, and its successor joins in."""
    config = site.config(
        tasks_max=2, session_timeout_ms=SHORTEST_SESSION_MS, transaction_boundary_records=1_000
    )
    with mirror(config, env=environ_for(pause_at=f"{point}:5")) as running:
        sleeper = sleep_through_the_session(site, running)
        site.produce(1_000, start=RECORDS)
        wake(sleeper)
        running.wait_for("task.restarting", task=0)
        site.produce(1_000, start=RECORDS + 1_000)
        drain(site, running)
        assert running.stop() == 0, running.errors
    assert_copied(site, RECORDS + 2_000)


@pytest.fixture(scope="module")
def forgetful(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A target that forgets a transactional id after five idle seconds, not after a week."""
    expiry = {
        "transactional.id.expiration.ms": 5_000,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 500,
    }
    with KafkaCluster(name="forgetful", broker_config=expiry) as cluster:
        yield cluster


def wait_forgotten(target: Cluster, transactional_id: str) -> None:
    """Until the coordinator has no such id any more."""
    wait_until(
        lambda: transactional_id not in known_ids(target),
        within=timedelta(seconds=20),
        what=f"{transactional_id} to expire",
    )


def known_ids(target: Cluster) -> str:
    """The transactional ids of a cluster, as Kafka's tool prints them."""
    return target.tool("TransactionsCommand", "list").stdout


@INSIDE
def test_c7_a_task_whose_transactional_id_expired_in_its_sleep_writes_nothing(
    tmp_path: Path, source_cluster: Cluster, forgetful: KafkaCluster, point: str
) -> None:
    """The coordinator does not know it any more: it ends instead of asking for a new identity."""
    site = make_site(tmp_path, source_cluster, forgetful)
    config = site.config(
        tasks_max=2, session_timeout_ms=SHORTEST_SESSION_MS, transaction_boundary_records=1_000
    )
    with mirror(config, env=environ_for(pause_at=f"{point}:5")) as running:
        sleeper = sleep_through_the_session(site, running)
        mine = running.found("incarnation.started", task=0)[-1]["transactional_id"]
        wait_forgotten(forgetful, mine)
        wake(sleeper)
        running.wait_for("task.restarting", task=0)
        site.produce(1_000, start=RECORDS)  # the other task's id has expired, too
        drain(site, running)
        assert running.stop() == 0, running.errors
    assert_copied(site, RECORDS + 1_000)
