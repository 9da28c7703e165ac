"""
Tasks that crash or sleep inside a transaction: rows C3, C6 and C7 of the failure matrix.

A task can be stopped at three points: begun (records are about to be sent), flushed (records are
written, their offsets are not sent), committed.
"""

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.entry import environ_for
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.crashes import (
    RECORDS,
    SHORTEST_SESSION_MS,
    assert_copied,
    drain,
    hold_a_writer,
    undecided,
    wake,
)
from tests.mirror.toolbox import STOPPED, Mirror, mirror, state_of

pytestmark = [pytest.mark.brokers, pytest.mark.long]


EVERY_POINT = pytest.mark.parametrize("point", ["begun", "flushed", "committed"])
INSIDE = pytest.mark.parametrize("point", ["begun", "flushed"])


@EVERY_POINT
def test_c3_a_crash_inside_a_transaction_leaves_nothing_behind(site: Site, point: str) -> None:
    """The successor aborts the open transaction and resumes from the unchanged shadow offsets."""
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
    assert running.found("incarnation.fenced"), "nothing was fenced: the test proves nothing"


def sleep_through_the_session(site: Site, running: Mirror) -> int:
    """Wait until task 0 has stopped and another task has mirrored everything; return its pid."""
    running.wait_for("partitions.acquired", task=0)  # else the other task mirrors everything
    site.produce(RECORDS)
    sleeper = hold_a_writer(running)
    drain(site, running)
    assert state_of(sleeper) == STOPPED, "it exited before it could wake up"
    return sleeper


@EVERY_POINT
def test_c6_a_task_that_slept_longer_than_its_session_writes_nothing(
    site: Site, point: str
) -> None:
    """Its partitions are owned by another task: it is fenced and exits, and its successor joins."""
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
    """A target whose transactional ids expire after five idle seconds, not after a week."""
    expiry = {
        "transactional.id.expiration.ms": 5_000,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 500,
    }
    with KafkaCluster(name="forgetful", broker_config=expiry) as cluster:
        yield cluster


def wait_forgotten(target: Cluster, transactional_id: str) -> None:
    """Wait until the coordinator has forgotten the transactional id."""
    wait_until(
        lambda: transactional_id not in known_ids(target),
        within=timedelta(seconds=20),
        what=f"{transactional_id} to expire",
    )


def known_ids(target: Cluster) -> str:
    """Return the transactional ids of a cluster, as Kafka's tool prints them."""
    return target.tool("TransactionsCommand", "list").stdout


@INSIDE
def test_c7_a_task_whose_transactional_id_expired_in_its_sleep_writes_nothing(
    tmp_path: Path, source_cluster: Cluster, forgetful: KafkaCluster, point: str
) -> None:
    """The coordinator no longer knows the id: the task exits and does not initialise a new one."""
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
