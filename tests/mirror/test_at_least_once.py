"""At-least-once mode: no record is lost, and each crash doubles one batch at most."""

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eos_mirror.core.ledger import Kind, LedgerEntry
from eos_mirror.core.metadata import GroupMetadata, encode_group
from eos_mirror.core.offset_map import Untranslatable
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import set_group_offsets
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.operate.translate import MapReader
from eos_mirror.ports import GroupOffset
from eos_mirror.testing import wait_until
from eos_mirror.testing.entry import environ_for
from eos_mirror.wire.parts import PART_RECORDS
from tests.mirror.command_line import UNSAFE
from tests.mirror.conftest import Site
from tests.mirror.crashes import hold_a_writer
from tests.mirror.toolbox import MOST_IN_A_BATCH, mirror, state_of

pytestmark = pytest.mark.brokers

MODE = {"transaction_producer": "false"}
BATCH_RECORDS = 1_000
POLL_RECORDS = PART_RECORDS + MOST_IN_A_BATCH
"""Most records of one poll of our own lane. A batch ends with the poll that made it full."""

KILLS = 5


def positions(site: Site) -> dict[int, int]:
    """Return the offsets of the source group."""
    return site.view.source_positions(site.topic, site.partitions)


@pytest.mark.parametrize("mode", ["true", "false"], ids=["exactly once", "at least once"])
def test_a_record_that_the_client_refuses_stops_its_partition(site: Site, mode: str) -> None:
    """The client sent nothing, so no acknowledgement can be missing and no task restarts."""
    config = site.config(**{**MODE, "transaction_producer": mode, "data_path": "client"})
    with config.open("a") as file:
        file.write(f"{site.flow.target}.producer.max.request.size = 4000\n")
    with mirror(config) as running:
        running.wait_for("ready")
        offer(site, [10, 20])
        wait_position(site, 2)
        offer(site, [5_000, 30])
        stopped = running.wait_for("partition.stopped")
        assert (stopped["partition"], stopped["cause"]) == (f"{site.topic}-0", "RecordRefused")
        site.produce(4)
        wait_until(
            lambda: positions(site) == {0: 2, 1: 1, 2: 1, 3: 1},
            within=timedelta(seconds=30),
            what="the other partitions",
        )
        assert running.stop() == 1
    assert not running.found("task.restarting")
    assert site.compare().missing == 3


def ledger_of(site: Site) -> list[LedgerEntry]:
    """Return all entries of the ledger."""
    return read_ledger(site.target.client_config(), site.flow)


def adopt(config: Path, site: Site, *direction: str) -> "subprocess.CompletedProcess[str]":
    """Run `eos-mirror adopt`."""
    return subprocess.run(
        [sys.executable, "-m", "eos_mirror.cli.main", "adopt", config, str(site.flow), *direction],
        capture_output=True,
        text=True,
        check=False,
    )


def copy(config: Path) -> None:
    """Run a mirror until it has caught up."""
    with mirror(config, "--once") as run:
        assert run.wait() == 0, run.errors


def test_an_undisturbed_copy_is_exact_and_uses_no_transaction(site: Site) -> None:
    """Positions are in the source group; there is no shadow group and no offset map."""
    site.produce(20_000)

    copy(site.config(**MODE, tasks_max=2))
    site.produce(5_000, start=20_000)
    copy(site.config(**MODE, tasks_max=2))

    compared = site.compare()
    assert compared.exact, str(compared)
    assert positions(site) == site.view.ends(site.topic, site.partitions)
    on_target = set(site.target.admin().list_topics(timeout=10).topics)
    assert site.flow.claims_topic in on_target
    assert site.flow.offset_map_topic not in on_target
    groups = site.target.admin().list_consumer_groups().result(10).valid
    assert site.flow.shadow_group not in {group.group_id for group in groups}


@pytest.mark.long
def test_killed_tasks_lose_nothing_and_double_one_batch_each(site: Site) -> None:
    """After a SIGKILL under load, only the uncommitted records are sent again."""
    config = site.config(**MODE, tasks_max=2, transaction_boundary_records=BATCH_RECORDS)
    with mirror(config) as running:
        running.wait_for("ready")
        for number in range(KILLS):
            site.produce(20_000, start=number * 20_000)
            successor = len(running.found("task.started")) + 1
            os.kill(running.pid(number % 2), signal.SIGKILL)
            running.wait_for("task.started", count=successor)
        assert running.stop() == 0, running.errors
    copy(config)

    compared = site.compare()
    assert (compared.missing, compared.altered) == (0, 0), str(compared)
    assert compared.duplicates <= KILLS * (BATCH_RECORDS + POLL_RECORDS), str(compared)


@pytest.mark.long
def test_a_crash_between_flush_and_commit_doubles_the_batch(site: Site) -> None:
    """Records that the target acknowledged and the source group does not have are sent again."""
    site.produce(100)
    config = site.config(**MODE)
    with mirror(config, env=environ_for(pause_at="flushed:1")) as running:
        held = hold_a_writer(running)
        running.kill()
        copy(config)
        os.kill(held, signal.SIGKILL)

    compared = site.compare()
    assert (compared.missing, compared.altered) == (0, 0), str(compared)
    assert 0 < compared.duplicates <= 100, str(compared)


@pytest.mark.long
def test_a_task_that_wakes_up_late_commits_nothing(site: Site) -> None:
    """Its offsets are refused, so records that others mirrored since are not sent again."""
    site.produce(20_000)
    config = site.config(**MODE, transaction_boundary_records=BATCH_RECORDS)
    with mirror(config, env=environ_for(pause_at="flushed:3")) as first:
        late = hold_a_writer(first)
        first.kill()
        copy(config)
        ends = positions(site)
        os.kill(late, signal.SIGCONT)
        wait_until(lambda: state_of(late) is None, within=timedelta(seconds=30), what="its exit")

    assert positions(site) == ends == site.view.ends(site.topic, site.partitions)
    compared = site.compare()
    assert (compared.missing, compared.altered) == (0, 0), str(compared)
    assert compared.duplicates <= BATCH_RECORDS + POLL_RECORDS, str(compared)


def offer(site: Site, sizes: list[int]) -> None:
    """Produce records of these sizes into partition 0, one by one."""
    producer = Producer({**site.source.client_config(), "message.max.bytes": 10_000_000})
    for size in sizes:
        producer.produce(site.topic, b"x" * size, partition=0)
        assert producer.flush(10) == 0


def narrow(site: Site) -> None:
    """Lower the message size limit of the remote topic without the flow's knowledge."""
    site.target.tool(
        "ConfigCommand", "--alter", "--topic", site.remote,
        "--add-config", "max.message.bytes=2000",
        "--bootstrap-server", site.target.bootstrap,
    )  # fmt: skip


def wait_position(site: Site, expected: int) -> None:
    """Wait until the source group is at this offset in partition 0."""
    wait_until(
        lambda: positions(site).get(0) == expected,
        within=timedelta(seconds=30),
        what=f"offset {expected}",
    )


@pytest.mark.parametrize("abort", ["true", "false"])
def test_a_refused_record_stops_its_partition_or_is_dropped_and_reported(
    site: Site, abort: str
) -> None:
    """With either value of `abort.on.send.failure`, a refused record is reported."""
    with mirror(site.config(**MODE, abort_on_send_failure=abort)) as running:
        running.wait_for("ready")
        narrow(site)
        offer(site, [10, 20])
        wait_position(site, 2)
        offer(site, [5_000])
        if abort == "true":
            assert running.wait_for("partition.stopped")["cause"] == "RecordRefused"
            offer(site, [30])
            assert running.stop() == 1
            assert positions(site)[0] == 2
        else:
            dropped = running.wait_for("records.dropped")
            assert (dropped["partition"], dropped["records"]) == (f"{site.topic}-0", 1)
            assert (dropped["from"], dropped["to"]) == (2, 3)
            offer(site, [30])
            wait_position(site, 4)
            assert running.stop() == 0
            (summary,) = running.found("flow.summary")[-1:]
            assert summary["dropped"] == 1
            (noted,) = ledger_of(site)
            assert noted.kind is Kind.DROP
            assert noted.details["partition"] == f"{site.topic}-0"
            assert len(noted.details["topic_id"]) == 22
            assert (noted.details["from"], noted.details["to"], noted.details["records"]) == (
                2,
                3,
                1,
            )

    compared = site.compare()
    assert compared.missing == (2 if abort == "true" else 1), str(compared)
    assert compared.duplicates == 0, str(compared)


def test_a_topic_created_again_is_not_taken_for_the_old_one(site: Site) -> None:
    """The topic's id is committed with every offset, so the new topic is recognised."""
    site.produce(100)
    other = encode_group(GroupMetadata(topic_id="A" * 22, partitions=site.partitions))
    set_group_offsets(
        site.source.admin(),
        site.flow.source_group,
        {
            TopicPartition(site.topic, p): GroupOffset(position=Position(5), metadata=other)
            for p in range(site.partitions)
        },
        side=Side.SOURCE,
    )

    with mirror(site.config(**MODE)) as running:
        stopped = running.wait_for("partition.stopped", count=site.partitions)
        running.stop()

    assert stopped["cause"] == "SourceDataLost"
    assert "created again" in stopped["reason"]
    assert site.compare().matched == 0


@pytest.mark.long
def test_the_other_mode_is_refused_until_it_is_adopted(site: Site) -> None:
    """A change of the mode without `adopt` is refused with one line; with it, the copy is exact."""
    once = site.config(session_timeout_ms=6000)
    twice = once.with_suffix(".alo")
    twice.write_text(f"{once.read_text()}transaction.producer = false\n")
    site.produce(1_000)
    copy(twice)

    with mirror(once, "--once") as refused:
        assert refused.wait() == UNSAFE, refused.events
    (line,) = [line for line in refused.errors if line.startswith("eos-mirror: ")]
    assert "mirrored at-least-once so far" in line
    assert "--from mode:alo" in line

    done = adopt(once, site, "--from", "mode:alo")
    assert done.returncode == 0, done.stderr
    assert f"{site.flow}: 4 positions taken over" in done.stdout
    site.produce(1_000, start=1_000)
    copy(once)

    with mirror(twice, "--once") as refused:
        assert refused.wait() == UNSAFE, refused.events
    assert "--to mode:alo" in "".join(refused.errors)
    done = adopt(twice, site, "--to", "mode:alo")
    assert done.returncode == 0, done.stderr
    site.produce(1_000, start=2_000)
    copy(twice)

    again = adopt(once, site, "--from", "mode:alo")
    assert again.returncode == 0, again.stderr
    site.produce(1_000, start=3_000)
    copy(once)

    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 4_000
    switches = [(entry.kind, entry.details["mode"]) for entry in ledger_of(site)]
    there, back = "exactly-once", "at-least-once"
    assert switches == [(Kind.MODE, mode) for mode in (there, back, there)]


@pytest.mark.long
def test_killed_tasks_are_continued_where_their_copies_end(site: Site) -> None:
    """They had sent more than they committed; exactly once, none of that is sent again."""
    config = site.config(**MODE, tasks_max=2, session_timeout_ms=6000)
    with mirror(config) as running:
        running.wait_for("ready")
        site.produce(100_000)
        wait_until(
            lambda: sum(map(len, site.values())) > 10_000,
            within=timedelta(seconds=30),
            what="some copies",
        )
        pids = [running.pid(task) for task in range(2)]
        running.kill()
    wait_until(
        lambda: all(state_of(pid) is None for pid in pids),
        within=timedelta(seconds=30),
        what="the end of the tasks",
    )
    once = site.config(session_timeout_ms=6000)

    done = adopt(once, site, "--from", "mode:alo")

    assert done.returncode == 0, done.stderr
    copy(once)
    compared = site.compare()
    assert compared.exact, (done.stdout, compared)


@pytest.mark.long
def test_translation_after_adoption_begins_where_exactly_once_began(site: Site) -> None:
    """Offsets from the adoption on translate exactly; earlier ones are untranslatable."""
    once = site.config(session_timeout_ms=6000)
    twice = once.with_suffix(".alo")
    twice.write_text(f"{once.read_text()}transaction.producer = false\n")
    site.produce(400)
    copy(twice)
    assert adopt(once, site, "--from", "mode:alo").returncode == 0
    site.produce(400, start=400)
    copy(once)

    offsets = MapReader(flow=site.flow, client_config=site.target.client_config()).load(
        TopicPartition(site.remote, 0)
    )

    assert [offsets.translate(at) for at in (100, 101, 199)] == [100, 101, 199]
    assert isinstance(offsets.translate(99), Untranslatable)


@pytest.mark.long
def test_a_flow_that_runs_is_not_adopted(site: Site) -> None:
    """As long as the source group has members, `adopt` is refused."""
    config = site.config(**MODE, session_timeout_ms=6000)
    other = config.with_suffix(".other")
    with mirror(config) as running:
        running.wait_for("ready")
        other.write_text(config.read_text().replace("transaction.producer = false", ""))
        refused = adopt(other, site, "--from", "mode:alo")
        assert refused.returncode == UNSAFE, refused.stderr
        assert "its tasks run" in refused.stderr
        assert running.stop() == 0


def test_what_cannot_be_adopted_is_said_in_a_line(site: Site) -> None:
    """A flow that never ran and a direction that contradicts the configuration are refused."""
    config = site.config()

    never = adopt(config, site, "--from", "mode:alo")
    neither = adopt(config, site, "--from", "mode:source")
    against = adopt(config, site, "--to", "mode:alo")

    assert (never.returncode, neither.returncode, against.returncode) == (2, 2, 2)
    assert "it never ran source-connector: there is nothing to adopt" in neither.stderr
    assert "never ran" in never.stderr
    assert "Set connector.type = sink and transaction.producer = false" in against.stderr
