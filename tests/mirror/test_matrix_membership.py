"""Tasks that leave the group or are killed with records in flight: rows P1, P2 and P6."""

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.faults import Action, Api, Fault
from eos_mirror.testing.proxy import fault_proxies
from tests.mirror.configurations import detour
from tests.mirror.conftest import Site, make_site
from tests.mirror.crashes import RECORDS, SHORTEST_SESSION_MS, assert_copied, drain, undecided
from tests.mirror.load import Load
from tests.mirror.toolbox import Mirror, mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]


@pytest.fixture
def proxied(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A target that is also reached through a proxy."""
    with KafkaCluster(name="proxied", proxied=True) as cluster:
        yield cluster


def test_p1_a_task_that_did_not_poll_for_too_long_is_replaced_and_doubles_nothing(
    tmp_path: Path, source_cluster: Cluster, proxied: KafkaCluster
) -> None:
    """A flush longer than max.poll.interval costs the task its partitions and its commit."""
    site = make_site(tmp_path, source_cluster, proxied)
    site.produce(20_000)
    config = site.config(
        tasks_max=2,
        session_timeout_ms=SHORTEST_SESSION_MS,
        consumer_max_poll_interval_ms=SHORTEST_SESSION_MS,
        # the session ends twelve seconds after the last poll; with the usual request timeout of
        # ten, the records would be sent again and committed before that
        producer_request_timeout_ms=19_000,
        transaction_boundary_records=2_000,
    )
    with fault_proxies(proxied.proxy_ports) as proxies, mirror(detour(config, proxied)) as running:
        for task in range(2):  # a task that joins later would look like the one that takes over
            running.wait_for("partitions.acquired", task=task)
        drain(site, running)
        late = proxies[1].inject(Fault(Api.PRODUCE, Action.HOLD_REQUEST))
        acquired = len(running.found("partitions.acquired"))
        site.produce(2_000, start=20_000)
        late.wait_hit()
        running.wait_for("partitions.acquired", count=acquired + 1)
        late.release()
        running.wait_for("task.restarting")
        site.produce(2_000, start=22_000)
        drain(site, running)
        assert running.stop() == 0, running.errors
    assert_copied(site, 24_000)


def wait_taken_over(site: Site, running: Mirror, task: int) -> None:
    """Wait until the source group has expelled a paused task and another has its partitions."""
    admin, group = site.source.admin(), site.flow.source_group
    taken = taken_by_others(running, task)

    def is_expelled() -> bool:
        members = admin.describe_consumer_groups([group])[group].result(10).members
        return site.flow.instance_id(task) not in {one.group_instance_id for one in members}

    wait_until(is_expelled, within=timedelta(seconds=30), what=f"the end of task {task}'s session")
    wait_until(
        lambda: taken_by_others(running, task) > taken,
        within=timedelta(seconds=30),
        what=f"another task to acquire the partitions of task {task}",
    )


def taken_by_others(running: Mirror, task: int) -> int:
    """Count how often other tasks acquired partitions."""
    return sum(event["task"] != task for event in running.found("partitions.acquired"))


def test_p2_partitions_that_move_under_load_take_nothing_along_and_leave_nothing_behind(
    tmp_path: Path, source_cluster: Cluster, target_cluster: Cluster
) -> None:
    """Records of a poll with a rebalance are dropped, and the new owner reads them again."""
    site = make_site(tmp_path, source_cluster, target_cluster, partitions=3)
    config = site.config(tasks_max=3, session_timeout_ms=SHORTEST_SESSION_MS)
    with mirror(config) as running:
        for task in range(3):
            running.wait_for("partitions.acquired", task=task)
        with Load(site).running() as load:
            for task in (0, 1):
                load.wait_for(5_000)
                sleeper = running.pid(task)
                os.kill(sleeper, signal.SIGSTOP)
                wait_taken_over(site, running, task)
                load.wait_for(5_000)
                acquired = len(running.found("partitions.acquired", task=task))
                os.kill(sleeper, signal.SIGCONT)
                running.wait_for("partitions.acquired", task=task, count=acquired + 1)
            site.source.tool(
                "TopicCommand", "--alter", "--topic", site.topic, "--partitions", "9",
            )  # fmt: skip
            running.wait_for("topic.grown", topic=site.remote, partitions=9)
            load.wait_for(5_000)
        drain(site, running)
        assert running.stop() == 0, running.errors
    assert_copied(site, load.count)


def test_p6_a_task_killed_with_deliveries_pending_loses_and_doubles_nothing(
    tmp_path: Path, source_cluster: Cluster, proxied: KafkaCluster
) -> None:
    """Three SIGKILLs, each with unacknowledged records on the target, lose and double nothing."""
    site = make_site(tmp_path, source_cluster, proxied)
    config = detour(site.config(), proxied)
    writer = f"{site.flow.name}|target-producer"  # claims and the ledger are answered
    with fault_proxies(proxied.proxy_ports) as proxies, mirror(config) as running:
        for kill in range(3):
            running.wait_for("incarnation.started", count=kill + 1)
            drain(site, running)
            unanswered = Fault(Api.PRODUCE, Action.DELAY_RESPONSE, times=None, client_id=writer)
            proxies[1].inject(unanswered)
            site.produce(RECORDS, start=kill * RECORDS)
            unanswered.wait_hit()
            assert undecided(site), "no record in flight: the test proves nothing"
            os.kill(running.pid(), signal.SIGKILL)
            proxies[1].clear()
            running.wait_for("task.restarting", count=kill + 1)
        drain(site, running)
        assert running.stop() == 0, running.errors
    assert_copied(site, 3 * RECORDS)
    assert running.found("incarnation.fenced"), "no kill left a claim behind"
