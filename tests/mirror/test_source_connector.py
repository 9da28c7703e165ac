"""`connector.type = source`: at least once, with positions where MirrorMaker 2 has its own."""

import itertools
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

import pytest
from confluent_kafka.admin import NewPartitions

from eos_mirror.core.connect_offsets import SOURCE_CONNECTOR, Owner, next_offsets, offsets_topic
from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.testing import read_topic, wait_until
from tests.mirror.command_line import UNSAFE, ends, status
from tests.mirror.conftest import Site
from tests.mirror.modes import (
    ADOPT,
    AT_LEAST_ONCE,
    KEPT,
    SINK,
    SOME,
    SOURCE,
    SOURCE_EXACTLY_ONCE,
    copy,
)
from tests.mirror.surgery import delete_topic
from tests.mirror.takeovers import adopt_as, copied
from tests.mirror.toolbox import Mirror, mirror, produce, state_of, topics_of

pytestmark = pytest.mark.brokers


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
    assert json.loads(status(site.config(**SOURCE), "--json"))["lag"] == 0


@pytest.mark.long
def test_killed_tasks_lose_nothing(site: Site) -> None:
    """A successor continues at the stored position, and repeats one batch at most."""
    with mirror(site.config(**SOURCE, tasks_max=2)) as running:
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
    with mirror(site.config(**SOURCE, tasks_max=2, refresh_topics_interval_seconds=1)) as running:
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


def switch(site: Site, mode: Mapping[str, str], *direction: str) -> str:
    """Switch the mode of the flow, and return what `adopt` prints."""
    code, text = adopt_as(site, mode, *direction)
    assert code == 0, text
    return text


@pytest.mark.long
def test_the_mode_is_switched_in_every_direction(site: Site) -> None:
    """After clean stops, each mode continues exactly where the other one ended."""
    turns = [
        (SOURCE, ()),
        (SINK, ("--from", "mode:source")),
        (SOURCE, ("--to", "mode:source")),
        (AT_LEAST_ONCE, ("--to", "mode:alo")),
        (SOURCE, ("--to", "mode:source")),
        (SINK, ("--from", "mode:source")),
    ]
    for turn, (mode, direction) in enumerate(turns):
        config = site.config(**mode, tasks_max=2)
        if direction:
            with mirror(config, "--once") as refused:
                assert refused.wait() == UNSAFE
            assert " ".join(direction) in "".join(refused.errors)
            switch(site, mode, *direction)
        site.produce(SOME, start=turn * SOME)
        with mirror(config, "--once") as running:
            assert running.wait() == 0, running.errors

    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == len(turns) * SOME
    entries = read_ledger(site.target.client_config(), site.flow)
    assert [one.details["mode"] for one in entries if one.kind is Kind.MODE] == [
        "exactly-once",
        "source-connector",
        "at-least-once",
        "source-connector",
        "exactly-once",
    ]


@pytest.mark.long
def test_a_killed_source_connector_is_continued_where_its_copies_end(site: Site) -> None:
    """It had written more than it stored; exactly once, none of that is copied again."""
    config = site.config(**SOURCE, tasks_max=2, transaction_boundary_records=1_000)
    with mirror(config) as running:
        running.wait_for("ready")
        site.produce(20 * SOME)
        wait_until(lambda: copied(site) > SOME, within=timedelta(seconds=30), what="some copies")
        running.kill()
    pids = [running.pid(task) for task in range(2)]
    wait_until(
        lambda: all(state_of(pid) is None for pid in pids),
        within=timedelta(seconds=30),
        what="the end of the tasks",
    )
    before = copied(site)

    code, text = adopt_as(site, SINK, "--from", "mode:source", "--plan", "--json")
    assert code == 5, text
    said = switch(site, SINK, "--from", "mode:source", "--quiet", "1")
    assert "the source connector stored" in said
    with mirror(site.config(**SINK), "--once") as running:
        assert running.wait() == 0, running.errors

    compared = site.compare()
    assert compared.exact, (before, compared)


@contextmanager
def under_load(site: Site) -> Iterator[None]:
    """Produce numbered records into all partitions for the length of the block."""
    done = threading.Event()

    def produce() -> None:
        for start in itertools.count(0, SOME // 10):
            site.produce(SOME // 10, start=start)
            if done.wait(0.1):
                return

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def first_to_lead(one: Mirror, other: Mirror) -> tuple[Mirror, Mirror]:
    """Return the run that leads, and the one that waits."""
    wait_until(
        lambda: any(run.found("driver.leading") for run in (one, other)),
        within=timedelta(seconds=60),
        what="a leader",
    )
    return (one, other) if one.found("driver.leading") else (other, one)


@pytest.mark.long
@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_a_standby_migrates_a_running_flow_to_exactly_once(site: Site, *, killed: bool) -> None:
    """
    Three drivers under load: the leader is a source connector, the others are sinks.

    The leader ends, the next one takes over exactly where the copies end; then that one is killed.
    """
    sink = site.folder / "sink.properties"
    sink.write_text(site.config(**ADOPT, **KEPT).read_text())
    with mirror(site.config(**SOURCE, **KEPT)) as first:
        first.wait_for("ready")
        with under_load(site), mirror(sink) as second, mirror(sink) as third:
            for one in (second, third):
                one.wait_for("driver.waiting")
            wait_until(lambda: copied(site) > SOME, within=timedelta(seconds=30), what="copies")
            if killed:
                first.kill()
            else:
                assert first.stop() == 0, first.errors
            leader, other = first_to_lead(second, third)
            assert leader.wait_for("flow.adopted", within_s=90)["partitions"] == site.partitions
            assert bool(leader.found("flow.adopting")) is killed
            leader.wait_for("ready")
            before = copied(site)
            wait_until(
                lambda: copied(site) > before, within=timedelta(seconds=30), what="exactly once"
            )
            leader.kill()
            other.wait_for("ready")
            assert not other.found("flow.adopted")
            assert other.stop() == 0, other.errors
    with mirror(sink, "--once") as last:
        assert last.wait() == 0, last.errors

    compared = site.compare()
    assert compared.exact, compared


@pytest.mark.long
def test_a_topic_that_was_created_again_is_noticed(site: Site) -> None:
    """Its records must not be skipped up to the position of the earlier topic."""
    site.produce(SOME)
    copy(site)
    delete_topic(site.source, site.topic)
    site.source.create_topic(site.topic, site.partitions)
    site.produce(2 * SOME)

    with mirror(site.config(**SOURCE, tasks_max=2), "--once") as running:
        assert running.wait() == 1

    stopped = running.found("partition.stopped")
    assert {one["cause"] for one in stopped} == {"SourceDataLost"}
    assert len(stopped) == site.partitions
    assert sum(map(len, site.values())) == SOME
    code, text = adopt_as(site, AT_LEAST_ONCE, "--to", "mode:alo")
    assert code == UNSAFE, text
    assert "it was deleted and created again" in text


@pytest.mark.long
def test_partitions_that_are_added_begin_at_their_start(site: Site) -> None:
    """The start position counts only for new topics."""
    config = site.config(**SOURCE, start_position="latest")
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors
    grown = [NewPartitions(site.topic, site.partitions + 2)]
    site.source.admin().create_partitions(grown)[site.topic].result(10)
    wait_until(
        lambda: len(site.source.admin().list_topics(site.topic).topics[site.topic].partitions) == 6,
        within=timedelta(seconds=10),
        what="the new partitions",
    )
    produce(site.source, site.topic, 600, partitions=site.partitions + 2)

    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors

    remotes = [TopicPartition(site.remote, p) for p in range(site.partitions + 2)]
    assert set(site.view.target.ends(remotes).values()) == {100}


def test_mirrormaker_2_needs_no_hand_over(site: Site) -> None:
    """It has the positions already; those of an earlier mode must not replace them."""
    site.produce(100)
    copy(site)

    code, text = adopt_as(site, SINK, "--to", "mm2")

    assert code == UNSAFE, text
    assert "MirrorMaker 2 has its positions already" in text


@pytest.mark.long
def test_exactly_once_positions_are_in_the_transaction(site: Site) -> None:
    """Killed tasks double nothing, and what MirrorMaker 2 would read agrees with the copies."""
    config = site.config(**SOURCE_EXACTLY_ONCE, **KEPT)
    with mirror(config) as running:
        running.wait_for("ready")
        for number in range(3):
            site.produce(SOME, start=number * SOME)
            successor = len(running.found("task.started")) + 1
            os.kill(running.pid(number % 2), signal.SIGKILL)
            running.wait_for("task.started", count=successor)
        assert running.stop() == 0, running.errors
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors

    compared = site.compare()
    assert compared.exact, compared
    assert stored(site) == site.view.ends(site.topic, site.partitions)
    assert site.view.positions(site.remote, site.partitions) == stored(site)
    groups = site.source.admin().list_consumer_groups().result(10).valid
    assert site.flow.source_group not in {group.group_id for group in groups}


@pytest.mark.long
def test_a_position_that_was_set_back_stays_there(site: Site) -> None:
    """It is not taken for one that MirrorMaker 2 stored since."""
    site.produce(400)
    config = site.config(**SOURCE_EXACTLY_ONCE)
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors
    where = (str(config), str(site.flow), site.topic, "0", "--to", "20", "--accept-duplicates")
    code, text, errors = ends("offsets", "set", *where, "--yes")
    assert code == 0, (text, errors)

    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors

    assert not running.found("flow.adopted")
    assert [len(values) for values in site.values()] == [180, 100, 100, 100]


@pytest.mark.long
def test_a_sink_tells_mirrormaker_2_where_it_is_once_it_is_a_source(site: Site) -> None:
    """Positions of partitions without new records are stored, too, before a task begins."""
    site.produce(SOME)
    for mode in (SINK, SOURCE_EXACTLY_ONCE):
        with mirror(site.config(**mode), "--once") as running:
            assert running.wait() == 0, running.errors

    assert stored(site) == site.view.ends(site.topic, site.partitions)
