"""`connector.type = source`: at least once, with positions where MirrorMaker 2 has its own."""

import json
import os
import signal
from datetime import timedelta

import pytest

from eos_mirror.core.connect_offsets import SOURCE_CONNECTOR, Owner, next_offsets, offsets_topic
from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import read_topic, wait_until
from tests.mirror.command_line import UNSAFE, status
from tests.mirror.conftest import Site
from tests.mirror.java_mm2 import COPIES_WITHIN, running_mm2
from tests.mirror.takeovers import copied, mm2_file
from tests.mirror.toolbox import mirror, topics_of

pytestmark = pytest.mark.brokers

MODE = {"connector_type": "source"}
SOME = 2_000


def stored(site: Site) -> dict[int, int]:
    """Return the next offset that the topic of MirrorMaker 2 has for each partition."""
    topic = offsets_topic(site.flow.source)
    config = site.target.client_config()
    partitions = len(site.target.admin().list_topics(topic, timeout=10).topics[topic].partitions)
    records = [
        (one.key, one.value)
        for partition in read_topic(config, topic, partitions=partitions)
        for one in partition
    ]
    found = next_offsets(records, Owner(SOURCE_CONNECTOR, site.flow.source))
    return {p: found[TopicPartition(site.topic, p)] for p in range(site.partitions)}


def copy(site: Site) -> None:
    """Run a mirror until it has caught up."""
    with mirror(site.config(**MODE, tasks_max=2), "--once") as running:
        assert running.wait() == 0, running.errors


def test_positions_are_in_the_topic_of_mirrormaker_2(site: Site) -> None:
    """Two runs copy every record once; there is no group on the source, and no transaction."""
    site.produce(SOME)
    copy(site)
    site.produce(SOME, start=SOME)
    copy(site)

    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 2 * SOME
    assert stored(site) == site.view.ends(site.topic, site.partitions)
    groups = site.source.admin().list_consumer_groups().result(10).valid
    assert site.flow.source_group not in {group.group_id for group in groups}
    assert site.flow.offset_map_topic not in topics_of(site.target)
    assert json.loads(status(site.config(**MODE), "--json"))["lag"] == 0


@pytest.mark.long
def test_killed_tasks_lose_nothing(site: Site) -> None:
    """A successor continues at the stored position, and repeats one batch at most."""
    with mirror(site.config(**MODE, tasks_max=2)) as running:
        running.wait_for("ready")
        for number in range(3):
            site.produce(SOME, start=number * SOME)
            successor = len(running.found("task.started")) + 1
            os.kill(running.pid(number % 2), signal.SIGKILL)
            running.wait_for("task.started", count=successor)
        assert running.stop() == 0, running.errors
    copy(site)

    compared = site.compare()
    assert compared.missing == 0, compared


@pytest.mark.long
def test_a_topic_that_grows_is_mirrored_from_its_start(site: Site) -> None:
    """The driver assigns new partitions and new topics; the others stay where they are."""
    with mirror(site.config(**MODE, tasks_max=2, refresh_topics_interval_seconds=1)) as running:
        running.wait_for("ready")
        site.produce(SOME)
        site.source.create_topic(f"{site.topic}-later", 3)
        later = running.wait_for("topic.created", topic=f"{site.remote}-later")
        assert later["partitions"] == 3
        wait_until(
            lambda: sum(one["partitions"] for one in running.found("partitions.acquired")) == 7,
            within=timedelta(seconds=30),
            what="the new partitions",
        )
        assert running.stop() == 0, running.errors
    assert not running.found("flow.rejoining")
    assert site.compare().exact


def by_mm2(site: Site, start: int) -> None:
    """Produce records, let MirrorMaker 2 copy them, and stop it."""
    site.produce(SOME, start=start)
    log = site.folder / f"java-{start}.log"
    with running_mm2(mm2_file(site, exactly_once=False), log) as java:
        wait_until(
            lambda: copied(site) >= start + SOME or java.poll() is not None,
            within=COPIES_WITHIN,
            what=f"copies, see {log}",
        )
        assert java.poll() is None, log.read_text()[-2000:]


@pytest.mark.long
def test_mirrormaker_2_and_we_take_turns_without_a_verb(site: Site) -> None:
    """Each continues where the other one ended: MirrorMaker 2, we, MirrorMaker 2, we."""
    for turn in range(2):
        by_mm2(site, 2 * turn * SOME)
        site.produce(SOME, start=(2 * turn + 1) * SOME)
        copy(site)

    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 4 * SOME


@pytest.mark.long
def test_a_mirrormaker_2_that_runs_is_refused(site: Site) -> None:
    """Two writers would repeat each other's records."""
    log = site.folder / "java.log"
    site.produce(SOME)
    with running_mm2(mm2_file(site, exactly_once=False), log) as java:
        wait_until(
            lambda: copied(site) >= SOME or java.poll() is not None,
            within=COPIES_WITHIN,
            what=f"copies, see {log}",
        )
        with mirror(site.config(**MODE), "--check") as refused:
            assert refused.wait() == UNSAFE
    (line,) = refused.errors
    assert "MirrorMaker 2 runs: group" in line
    assert "Stop it first." in line
