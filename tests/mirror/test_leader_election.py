"""Of two runs of a flow, one mirrors and the other takes over; nothing is doubled."""

import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.command_line import CONFIGURATION, refused
from tests.mirror.conftest import Site, make_site
from tests.mirror.rights import deny, guarded_cluster, login
from tests.mirror.toolbox import Mirror, mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

RECORDS = 2_000
SOON = timedelta(seconds=60)


@pytest.fixture
def config(site: Site) -> Path:
    """A configuration with two tasks and a short session of the leader."""
    return site.config(tasks_max=2, session_timeout_ms=6_000)


def mirrored(site: Site, *, start: int) -> None:
    """Produce more records, and wait until the target has them."""
    site.produce(RECORDS, start=start)
    site.wait_caught_up()


def test_a_run_that_stands_by_takes_over_from_one_that_was_killed(site: Site, config: Path) -> None:
    """It takes over when the leader is killed, and again when the leader stops cleanly."""
    with mirror(config) as first:
        first.wait_for("ready")
        with mirror(config) as second:
            mirrored(site, start=0)
            waiting = second.wait_for("driver.waiting")
            assert waiting["pid"] == first.process.pid
            assert not second.found("ready")
            assert not first.found("task.restarting")
            site.produce(RECORDS, start=RECORDS)
            first.kill()
            second.wait_for("driver.leading")
            second.wait_for("ready")
            mirrored(site, start=2 * RECORDS)
            with mirror(config) as third:
                third.wait_for("driver.waiting")
                assert second.stop() == 0, second.errors
                third.wait_for("ready")
                mirrored(site, start=3 * RECORDS)
                assert third.stop() == 0, third.errors
    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 4 * RECORDS


def test_a_leader_that_slept_lets_its_successor_be(site: Site, config: Path) -> None:
    """A leader that wakes up detects that another run mirrors, and waits until that run stops."""

    def asleep(run: Mirror) -> bool:
        return bool(run.found("driver.superseded"))

    with mirror(config) as first, mirror(config) as second:
        leader, other = (first, second) if leads(first, second) else (second, first)
        mirrored(site, start=0)
        os.kill(leader.process.pid, signal.SIGSTOP)
        other.wait_for("ready")
        mirrored(site, start=RECORDS)
        os.kill(leader.process.pid, signal.SIGCONT)
        wait_until(lambda: asleep(leader), within=SOON, what="the leader to detect its successor")
        mirrored(site, start=2 * RECORDS)
        assert other.stop() == 0, other.errors
        leader.wait_for("ready", count=2)
        mirrored(site, start=3 * RECORDS)
        assert leader.stop() == 0, leader.errors
    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 4 * RECORDS


def test_a_run_that_stands_by_ends_when_it_is_told_to(site: Site, config: Path) -> None:
    """A waiting run exits on SIGTERM without starting a task."""
    with mirror(config) as first:
        first.wait_for("ready")
        with mirror(config) as second:
            second.wait_for("driver.waiting")
            assert second.stop() == 0, second.errors
            assert not second.found("task.started")
        mirrored(site, start=0)
        assert first.stop() == 0, first.errors


def test_a_run_that_was_killed_is_not_waited_for_on_its_host(site: Site) -> None:
    """Its member stays in the group for a session, but its process is gone."""
    config = site.config(session_timeout_ms=60_000)
    with mirror(config) as first:
        first.wait_for("ready")
        mirrored(site, start=0)
        first.kill()
    with mirror(config) as second:
        second.wait_for("ready", within_s=30)
        assert not second.found("driver.waiting")
        mirrored(site, start=RECORDS)
        assert not second.found("driver.superseded")
        assert second.stop() == 0, second.errors
    assert site.compare().exact


def test_a_changed_file_is_rolled_out_by_a_run_that_stands_by(site: Site, config: Path) -> None:
    """It waits for the run with the old file, checks itself meanwhile, and then takes over."""
    with mirror(config) as old:
        old.wait_for("ready")
        mirrored(site, start=0)
        changed = site.config(tasks_max=1, session_timeout_ms=6_000)
        with mirror(changed) as new:
            new.wait_for("driver.waiting")
            mirrored(site, start=RECORDS)
            assert old.stop() == 0, old.errors
            new.wait_for("ready")
            mirrored(site, start=2 * RECORDS)
            assert new.stop() == 0, new.errors
        assert not old.found("task.restarting")
    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 3 * RECORDS


def test_a_wrong_file_is_refused_before_it_waits(site: Site, config: Path) -> None:
    """A run on standby that could never start would be no help when it is needed."""
    with mirror(config) as first:
        first.wait_for("ready")
        wrong = site.config(transaction_timeout_ms=3_600_000, session_timeout_ms=6_000)
        refused(wrong, code=CONFIGURATION, says=["transaction.timeout.ms=3600000"])
        assert first.stop() == 0, first.errors


@pytest.mark.usefixtures("own_brokers")
def test_without_the_right_on_the_group_a_run_mirrors_and_warns(tmp_path: Path) -> None:
    """It mirrored before the right was needed; it says what is missing."""
    with guarded_cluster() as guarded:
        site = make_site(tmp_path, guarded, guarded)
        group = (ResourceType.GROUP, site.flow.drivers_group, ResourcePatternType.LITERAL)
        deny(guarded, group, AclOperation.READ)
        site.produce(RECORDS)
        for _ in ("first start", "next start"):
            with mirror(login(site), "--once") as running:
                assert running.wait() == 0, running.errors
            (warning,) = running.found("flow.warning")
            assert site.flow.drivers_group in warning["reason"]
        assert site.compare().exact


@pytest.mark.usefixtures("own_brokers")
def test_a_leader_whose_target_is_gone_ends_when_it_is_told_to(
    tmp_path: Path, source_cluster: Cluster
) -> None:
    """A leader that cannot leave its group because the target is gone still exits on SIGTERM."""
    with KafkaCluster(name="gone") as target:
        site = make_site(tmp_path, source_cluster, target)
        with mirror(site.config()) as running:
            running.wait_for("ready")
            target.kill(1)
            assert running.stop() in {0, 1}, running.errors


def leads(first: Mirror, second: Mirror) -> bool:
    """Wait until one run mirrors, and return whether it is the first one."""
    wait_until(
        lambda: bool(first.found("ready") or second.found("ready")), within=SOON, what="a leader"
    )
    return bool(first.found("ready"))
