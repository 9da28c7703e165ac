"""Checkpoints and groups on the target, checked by brute force and by Kafka's formatter."""

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from eos_mirror.client import MirrorClient, OffsetAndMetadata
from eos_mirror.core.internal_records import OffsetSync
from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.group_offsets import HAS_MEMBERS
from eos_mirror.kafka.topic_reader import TopicReader
from eos_mirror.testing import wait_until
from eos_mirror.testing.checker import read_topic
from eos_mirror.testing.entry import environ_for
from tests.mirror.conftest import Site
from tests.mirror.crashes import SHORTEST_SESSION_MS, hold_a_writer
from tests.mirror.group_sync import (
    SETTINGS,
    SOON,
    SYNCED,
    checkpoints,
    commit,
    committed,
    member,
    mirrored,
    wait_moved,
    wait_rounds,
)
from tests.mirror.source_transactions import produce_with_gaps
from tests.mirror.toolbox import STOPPED, Mirror, mirror, state_of
from tests.mirror.translation import Offsets, Truth, everywhere

pytestmark = pytest.mark.brokers

FORMATTER = "org.apache.kafka.connect.mirror.formatters.CheckpointFormatter"


def offsets_of(found: Mapping[TopicPartition, OffsetAndMetadata]) -> Offsets:
    return {partition: offset.offset for partition, offset in found.items()}


def test_checkpoints_are_exact_and_kafka_prints_them(site: Site) -> None:
    """Checkpoints are exact in gaps, for a group that lags, and for one ahead of the mirror."""
    produce_with_gaps(site, 30)
    end = max(site.view.ends(site.topic, site.partitions).values())
    wanted = {f"readers-{offset}": offset for offset in range(0, end + 1, 19)}
    for group, offset in wanted.items():
        commit(site.source, group, everywhere(site, offset))
    commit(site.source, "ahead", everywhere(site, end + 1_000))
    commit(site.source, "console-consumer-7", everywhere(site, 0))
    with mirrored(site, site.config(**SETTINGS)) as running:
        truth = Truth(site)
        wait_rounds(running)
    translated = {
        group: truth.of(everywhere(site, offset))
        for group, offset in {**wanted, "ahead": end}.items()
    }
    client = MirrorClient(site.target.client_config())
    told = client.remote_groups_offsets(re.compile(".*"), site.flow.source, timeout=SOON)
    assert {group: offsets_of(found) for group, found in told.items()} == translated
    assert {one.metadata for one in told["readers-19"].values()} == {"of readers-19"}
    assert printed(site) == {
        (group, *partition, downstream)
        for group, offsets in translated.items()
        for partition, downstream in offsets.items()
    }


def printed(site: Site) -> set[tuple[str, str, int, int]]:
    """Return group, topic, partition and downstream offset of the checkpoints, as Kafka prints."""
    done = site.target.tool(
        "ConsoleConsumer",
        *("--topic", f"{site.flow.source}.checkpoints.internal", "--from-beginning"),
        *("--timeout-ms", "5000", "--formatter", FORMATTER),
        timeout=SOON,
    )
    form = (
        r"Checkpoint\{consumerGroupId=([\w-]+), topicPartition=(\S+)-(\d+), "
        r"upstreamOffset=\d+, downstreamOffset=(\d+), metadata=of \S+\}"
    )
    found = re.finditer(form, done.stdout)
    return {(one[1], one[2], int(one[3]), int(one[4])) for one in found}


def test_groups_on_the_target_follow_but_never_back_and_never_under_a_member(site: Site) -> None:
    """A group that is further on the target, or has members there, is not changed."""
    site.produce(4_000)
    for group in ("follows", "is further", "reads"):
        commit(site.source, group, everywhere(site, 100))
    with mirrored(site, site.config(**SYNCED)) as running:
        truth = Truth(site)
        at = {offset: truth.of(everywhere(site, offset)) for offset in (100, 500, 900)}
        wait_moved(site, "reads", at[100])
        assert committed(site.target, "follows", truth.remotes) == at[100]
        commit(site.target, "is further", at[900])
        with member(site, "reads"):
            assert not running.found("group.waiting", group="reads")
            for group in ("follows", "is further", "reads"):
                commit(site.source, group, everywhere(site, 500))
            wait_moved(site, "follows", at[500])
            wait_rounds(running)
            assert committed(site.target, "is further", truth.remotes) == at[900]
            assert committed(site.target, "reads", truth.remotes) == at[100]
            waiting = running.wait_for("group.waiting", group="reads")
            assert waiting["reason"] == HAS_MEMBERS
        commit(site.source, "follows", everywhere(site, 100))
        wait_until(
            lambda: offsets_of(checkpoints(site, "follows")) == at[100],
            within=SOON,
            what="the checkpoint to rewind with the group",
        )
        wait_rounds(running)
        assert committed(site.target, "follows", truth.remotes) == at[500]
        assert not running.found("checkpoints.failed")


@pytest.mark.long
def test_a_group_that_commits_is_moved_at_once(site: Site) -> None:
    """A commit is synced immediately, also of a new group, without waiting for an interval."""
    site.produce(4_000)
    commit(site.source, "old", everywhere(site, 100))
    config = site.config(
        **{
            **SYNCED,
            "sync_group_offsets_interval_seconds": 3600,
            "emit_checkpoints_interval_seconds": 3600,
        }
    )
    with mirrored(site, config) as running:
        truth = Truth(site)
        running.wait_for("checkpoints.emitted")
        for group, offset in (("old", 500), ("new", 700), ("old", 900)):
            commit(site.source, group, everywhere(site, offset))
            wait_moved(site, group, truth.of(everywhere(site, offset)))
        assert len(running.found("checkpoints.emitted")) == 1


@pytest.mark.long
def test_a_group_far_behind_is_exact_after_everything_was_killed(site: Site) -> None:
    """No part of the offset map is only in memory: a lagging group is translated exactly."""
    site.produce(100_000)
    with mirror(site.config(**SETTINGS)) as first:
        site.wait_caught_up()
        first.kill()
    produce_with_gaps(site, 10)
    truth_at = everywhere(site, 10_000 // site.partitions)
    commit(site.source, "slow", truth_at)
    with mirrored(site, site.config(**SETTINGS)) as running:
        wait_rounds(running)
        assert offsets_of(checkpoints(site, "slow")) == Truth(site).of(truth_at)


def test_a_killed_checkpoint_task_is_replaced_and_mirroring_continues(site: Site) -> None:
    """The crash is reported, and the next group task resumes from the written checkpoints."""
    site.produce(400)
    commit(site.source, "readers", everywhere(site, 10))
    with mirrored(site, site.config(**SETTINGS)) as running:
        wait_rounds(running)
        before = checkpoints(site, "readers")
        os.kill(group_task(running), signal.SIGKILL)
        running.wait_for("checkpoints.failed")
        wait_rounds(running)
        assert checkpoints(site, "readers") == before
        assert not running.found("task.restarting")
        commit(site.source, "readers", everywhere(site, 90))
        wait_until(
            lambda: (
                offsets_of(checkpoints(site, "readers")) == Truth(site).of(everywhere(site, 90))
            ),
            within=SOON,
            what="the next checkpoint",
        )


def group_task(running: Mirror) -> int:
    """Return the process id of the group task: the driver's child that is no mirror task."""
    tasks = {event["pid"] for event in running.found("task.started")}
    threads = Path(f"/proc/{running.process.pid}/task").glob("*/children")
    (found,) = {int(pid) for thread in threads for pid in thread.read_text().split()} - tasks
    return found


SYNCS = "org.apache.kafka.connect.mirror.formatters.OffsetSyncFormatter"


@pytest.mark.long
@pytest.mark.parametrize("mode", ["transaction_producer = false", "connector_type = source"])
def test_at_least_once_translates_from_syncs_and_never_ahead(site: Site, mode: str) -> None:
    """A group at the end is exact, even after a kill that repeats records. Kafka prints syncs."""
    key, value = mode.split(" = ")
    config = site.config(**{**SYNCED, "emit_offset-syncs_enabled": "true", key: value})
    site.produce(4_000)
    end = 1_000
    for group, offset in (("at the end", end), ("behind", 100), ("between", end // 2)):
        commit(site.source, group, everywhere(site, offset))
    with mirror(config) as running:
        running.wait_for("partitions.acquired")
        remotes = [TopicPartition(site.remote, p) for p in range(site.partitions)]
        wait_until(
            lambda: set(site.view.target.ends(remotes).values()) == {end},
            within=SOON,
            what="the copies",
        )
        ends = site.view.target.ends(remotes)
        wait_moved(site, "at the end", ends)
        os.kill(running.pid(), signal.SIGKILL)
        site.produce(4_000, start=4_000)
        commit(site.source, "at the end", everywhere(site, 2 * end))
        wait_until(
            lambda: (
                committed(site.target, "at the end", remotes)
                == site.view.target.ends(remotes)
                != ends
            ),
            within=SOON,
            what="the offsets of the group at the end",
        )
        wait_rounds(running)
        assert running.stop() == 0, running.errors
    assert not running.found("offset-syncs.failed")
    for group, offset in (("behind", 100), ("between", end // 2)):
        for partition, at in checkpoints(site, group).items():
            assert at.offset <= offset, f"{group} {partition}: a record before it was mirrored once"
    assert printed_syncs(site) == {(site.topic, p) for p in range(site.partitions)}


def test_syncs_that_cannot_be_written_are_said_once_and_stop_nothing(site: Site) -> None:
    """A syncs topic with too many replicas is reported once, and records are still mirrored."""
    config = site.config(
        **{
            "emit_offset-syncs_enabled": "true",
            "offset-syncs_topic_replication_factor": 3,
            "transaction_producer": "false",
        }
    )
    with mirror(config) as running:
        for start in (0, 400, 800):
            site.produce(400, start=start)
            end = (start + 400) // site.partitions
            wait_mirrored(site, end)
        assert running.stop() == 0, running.errors
    (failed,) = running.found("offset-syncs.failed")
    assert "replication" in failed["reason"].lower()


@pytest.mark.long
def test_a_task_that_slept_through_its_session_notes_no_pair(site: Site) -> None:
    """Its pair would point after records that its successor sent, and groups would miss them."""
    config = site.config(
        **{
            "emit_offset-syncs_enabled": "true",
            "transaction_producer": "false",
            "transaction_boundary_records": 200,
            "session_timeout_ms": SHORTEST_SESSION_MS,
            "tasks_max": 2,
        }
    )
    with mirror(config, env=environ_for(pause_at="flushed:3")) as running:
        for task in range(2):
            running.wait_for("partitions.acquired", task=task)
        site.produce(8_000)
        sleeper = hold_a_writer(running)
        wait_mirrored(site, 8_000 // site.partitions)
        assert state_of(sleeper) == STOPPED, "it exited before it could wake up"
        os.kill(sleeper, signal.SIGCONT)
        running.wait_for("task.restarting")
        site.produce(400, start=8_000)
        wait_mirrored(site, 8_400 // site.partitions)
        assert running.stop() == 0, running.errors
    config_of = site.target.client_config()
    sources = read_topic(site.source.client_config(), site.topic, partitions=site.partitions)
    copies = read_topic(config_of, site.remote, partitions=site.partitions)
    syncs = f"mm2-offset-syncs.{site.flow.source}.internal"
    for key, value in TopicReader(config_of, syncs, group="test").updates(within=SOON):
        pair = OffsetSync.decode(key, value)
        number = pair.partition.partition
        behind = {copy.value for copy in copies[number] if copy.offset >= pair.downstream}
        missed = [r for r in sources[number] if r.offset >= pair.upstream and r.value not in behind]
        assert not missed, f"{pair}: a group there never sees {len(missed)} records"


def wait_mirrored(site: Site, end: int) -> None:
    """Wait until the source group is at this offset in every partition."""
    wait_until(
        lambda: set(site.view.source_positions(site.topic, site.partitions).values()) == {end},
        within=SOON,
        what=f"everything before {end} is mirrored",
    )


def printed_syncs(site: Site) -> set[tuple[str, int]]:
    """Return the source partitions that have offset syncs, as Kafka prints them."""
    done = site.target.tool(
        "ConsoleConsumer",
        *("--topic", f"mm2-offset-syncs.{site.flow.source}.internal", "--from-beginning"),
        *("--timeout-ms", "5000", "--formatter", SYNCS),
        timeout=SOON,
    )
    form = r"OffsetSync\{topicPartition=(\S+)-(\d+), upstreamOffset=\d+, downstreamOffset=\d+\}"
    return {(one[1], int(one[2])) for one in re.finditer(form, done.stdout)}
