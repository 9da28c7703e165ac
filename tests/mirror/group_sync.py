"""Groups whose checkpoints are emitted and whose offsets are synced while a mirror runs."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from confluent_kafka import Consumer

from eos_mirror.client import MirrorClient, OffsetAndMetadata
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import RestartTask
from eos_mirror.kafka.groups import CommittedOffsets, set_group_offsets
from eos_mirror.ports import GroupOffset
from eos_mirror.testing import wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site
from tests.mirror.toolbox import Mirror, mirror
from tests.mirror.translation import Offsets

SETTINGS = {
    "emit_checkpoints_enabled": "true",
    "emit_checkpoints_interval_seconds": 1,
    "checkpoints_topic_replication_factor": 1,
    "refresh_groups_interval_seconds": 1,
}
"""Checkpoints are emitted every second."""

SYNCED = {
    **SETTINGS,
    "sync_group_offsets_enabled": "true",
    "sync_group_offsets_interval_seconds": 1,
}
"""Group offsets are synced as well."""

SOON = timedelta(seconds=60)


def commit(cluster: Cluster, group: str, offsets: Offsets) -> None:
    """Commit offsets of a group, as an application without members would."""
    found = {
        partition: GroupOffset(position=Position(offset, None), metadata=f"of {group}")
        for partition, offset in offsets.items()
    }
    set_group_offsets(cluster.admin(), group, found, side=Side.SOURCE)


def committed(cluster: Cluster, group: str, wanted: list[TopicPartition]) -> Offsets:
    """Return the committed offsets of a group on the target."""
    found = CommittedOffsets(cluster.client_config(), group, side=Side.TARGET).read(wanted)
    return {partition: offset.position.next_offset for partition, offset in found.items()}


def moved(site: Site, group: str, wanted: Offsets) -> bool:
    """Return whether the group has these offsets on the target; False if it cannot be read yet."""
    with suppress(RestartTask):
        return committed(site.target, group, list(wanted)) == wanted
    return False


def checkpoints(site: Site, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return what an application on the target reads from the checkpoints."""
    client = MirrorClient(site.target.client_config())
    return client.remote_consumer_offsets(group, site.flow.source, timeout=SOON)


@contextmanager
def mirrored(site: Site, config: Path) -> Iterator[Mirror]:
    """Run a mirror that has caught up when the block begins, and stop it after the block."""
    with mirror(config) as running:
        site.wait_caught_up()
        yield running
        assert running.stop() == 0, running.errors


def wait_rounds(running: Mirror, more: int = 2) -> None:
    """Wait until this many more rounds of checkpoints have ended."""
    ended = len(running.found("checkpoints.emitted"))
    running.wait_for("checkpoints.emitted", count=ended + more)


def wait_moved(site: Site, group: str, wanted: Offsets) -> None:
    """Wait until the group has these offsets on the target."""
    wait_until(
        lambda: moved(site, group, wanted),
        within=SOON,
        what=f"{group} at {wanted}",
    )


@contextmanager
def member(site: Site, group: str) -> Iterator[None]:
    """Keep a member in a group on the target that commits nothing, for the length of the block."""
    consumer = Consumer(
        {**site.target.client_config(), "group.id": group, "enable.auto.commit": False}
    )
    consumer.subscribe([site.remote])
    try:
        wait_until(
            lambda: consumer.poll(0.1) is not None or bool(consumer.assignment()),
            within=SOON,
            what="a member of the group",
        )
        yield
    finally:
        consumer.close()
