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

from eos_mirror.core.connect_offsets import SOURCE_CONNECTOR, Owner, next_offsets, offsets_topic
from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.testing import read_topic, wait_until
from tests.mirror.command_line import UNSAFE, status
from tests.mirror.conftest import Site
from tests.mirror.java_mm2 import COPIES_WITHIN, running_mm2
from tests.mirror.takeovers import adopt_as, copied, mm2_file
from tests.mirror.toolbox import Mirror, mirror, state_of, topics_of

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


SINK = {"connector_type": "sink"}
AT_LEAST_ONCE = {**SINK, "transaction_producer": "false"}


def switch(site: Site, mode: Mapping[str, str], *direction: str) -> str:
    """Switch the mode of the flow, and return what `adopt` prints."""
    code, text = adopt_as(site, mode, *direction)
    assert code == 0, text
    return text


@pytest.mark.long
def test_the_mode_is_switched_in_every_direction(site: Site) -> None:
    """After clean stops, each mode continues exactly where the other one ended."""
    turns = [
        (MODE, ()),
        (SINK, ("--from", "mode:source")),
        (MODE, ("--to", "mode:source")),
        (AT_LEAST_ONCE, ("--to", "mode:alo")),
        (MODE, ("--to", "mode:source")),
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
    config = site.config(**MODE, tasks_max=2, transaction_boundary_records=1_000)
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


ADOPT = {**SINK, "mode_change": "adopt"}
KEPT = {"tasks_max": 2, "transaction_boundary_records": 1_000}


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
    with mirror(site.config(**MODE, **KEPT)) as first:
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


EXACTLY_ONCE = {**MODE, "exactly_once_source_support": "enabled"}


@pytest.mark.long
def test_exactly_once_positions_are_in_the_transaction(site: Site) -> None:
    """Killed tasks double nothing, and what MirrorMaker 2 would read agrees with the copies."""
    config = site.config(**EXACTLY_ONCE, **KEPT)
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
@pytest.mark.parametrize("begins", ["mm2", "we"])
def test_exactly_once_takes_turns_too(site: Site, begins: str) -> None:
    """MirrorMaker 2 exactly once and we continue where the other one ended, in either order."""
    turns = ["mm2", "we"] if begins == "mm2" else ["we", "mm2"]
    for turn, who in enumerate(2 * turns):
        if who == "mm2":
            by_mm2(site, turn * SOME, exactly_once=True)
        else:
            site.produce(SOME, start=turn * SOME)
            with mirror(site.config(**EXACTLY_ONCE), "--once") as running:
                assert running.wait() == 0, running.errors

    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 4 * SOME


@pytest.mark.long
def test_a_sink_tells_mirrormaker_2_where_it_is_once_it_is_a_source(site: Site) -> None:
    """Positions of partitions without new records are stored, too, before a task begins."""
    site.produce(SOME)
    for mode in (SINK, EXACTLY_ONCE):
        with mirror(site.config(**mode), "--once") as running:
            assert running.wait() == 0, running.errors

    assert stored(site) == site.view.ends(site.topic, site.partitions)


def by_mm2(site: Site, start: int, *, exactly_once: bool = False) -> None:
    """Produce records, let MirrorMaker 2 copy them, and stop it."""
    site.produce(SOME, start=start)
    log = site.folder / f"java-{start}.log"
    with running_mm2(mm2_file(site, exactly_once=exactly_once), log) as java:
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
