"""The copy stays exact when tasks die, runs restart, and topics grow."""

import os
import signal

import pytest

from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers


def test_killed_tasks_lose_and_double_nothing(site: Site) -> None:
    """After five SIGKILLs of alternating tasks under load, the copy is exact."""
    with mirror(site.config(tasks_max=2)) as running:
        running.wait_for("ready")
        for round_number in range(5):
            site.produce(5_000, start=round_number * 5_000)
            successor = len(running.found("task.started")) + 1
            os.kill(running.pid(round_number % 2), signal.SIGKILL)
            running.wait_for("task.started", count=successor)
        site.wait_caught_up()
        assert running.stop() == 0, running.errors

    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 25_000
    assert running.found("incarnation.fenced"), "no kill left a claim behind"


def test_a_restarted_run_continues_where_the_last_one_stopped(site: Site) -> None:
    """A graceful stop releases every claim, so the next run has nothing to fence."""
    config = site.config()
    for start in range(0, 30_000, 10_000):
        site.produce(10_000, start=start)
        with mirror(config, "--once") as running:
            assert running.wait() == 0, running.errors
        assert not running.found("incarnation.fenced")
        assert len(running.found("incarnation.started")) == 1, "a suspicion without a cause"

    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 30_000


def test_new_partitions_and_new_topics_are_followed(site: Site) -> None:
    """A new partition is created on the target before it is read from the source."""
    with mirror(site.config()) as running:
        running.wait_for("ready")
        site.produce(1_000)
        site.source.tool(
            "TopicCommand", "--alter", "--topic", site.topic, "--partitions", "6",
            "--bootstrap-server", site.source.bootstrap,
        )  # fmt: skip
        running.wait_for("topic.grown", topic=site.remote, partitions=6)
        site.source.create_topic(f"{site.topic}-new", 2)
        running.wait_for("topic.created", topic=f"{site.remote}-new")
        grown = Site(**{**vars(site), "partitions": 6})
        grown.produce(6_000, start=1_000)
        grown.view.wait_caught_up(grown.topic, grown.remote, partitions=6)
        assert running.stop() == 0, running.errors

    compared = grown.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 7_000


def test_a_quick_restart_still_gets_what_was_added_meanwhile(site: Site) -> None:
    """Tasks join again if the group returns the old assignment to a static member."""
    config = site.config()
    site.produce(1_000)
    with mirror(config, "--once") as first:
        assert first.wait() == 0, first.errors
    site.source.create_topic(f"{site.topic}-new", 2)

    with mirror(config) as second:
        ready = second.wait_for("ready", within_s=30)
        assert ready["flows"][0]["partitions"] == 6
        site.produce(1_000, start=1_000)
        site.wait_caught_up()
        assert second.stop() == 0, second.errors

    assert site.compare().exact
