"""Waits until everything is mirrored, and collects evidence when it is not."""

import json
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from time import monotonic, sleep

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import MirrorError
from eos_mirror.testing import ClusterFailed
from tests.chaos.allowed import MARKERS_LOST
from tests.chaos.restarting_driver import RestartingDriver
from tests.chaos.site import FLOW, LONELY, PARTITIONS, SAFE_REPLICATION, Site, remote
from tests.mirror.toolbox import FlowView

STALL_S = 60.0
LOOK_S = 0.25


class Drained(Enum):
    """The result of waiting for the drain."""

    YES = "yes"
    MARKERS_LOST = "stopped with MarkersLost"
    NO = "STALL"


def source_ends(view: FlowView) -> dict[TopicPartition, int]:
    """Return the last stable offset of every source partition."""
    return {
        TopicPartition(topic, p): end
        for topic, count in PARTITIONS.items()
        for p, end in view.ends(topic, count).items()
    }


def positions(site: Site) -> dict[TopicPartition, int]:
    """Return the committed position by source partition; -1 where there is none."""
    view = site.view

    def of_topic(topic: str, count: int) -> dict[int, int]:
        if site.exactly_once:
            return view.positions(remote(TopicPartition(topic, 0)).topic, count)
        return view.source_positions(topic, count)

    return {
        TopicPartition(topic, p): at
        for topic, count in PARTITIONS.items()
        for p, at in of_topic(topic, count).items()
    }


def wait_drained(site: Site, restarting: RestartingDriver) -> Drained:
    """Wait until every position is at its end, or until there is no progress for STALL_S."""
    view = site.view
    ends, best, since = source_ends(view), -1, monotonic()
    while monotonic() - since < STALL_S:
        lost = without_markers(restarting)
        with suppress(MirrorError):
            found = positions(site)
            if all(found[one] >= end for one, end in ends.items() if one not in lost):
                return Drained.YES
            if sum(found.values()) > best:
                best, since = sum(found.values()), monotonic()
        if site.replication < SAFE_REPLICATION and restarting.found(
            "partition.stopped", cause=MARKERS_LOST
        ):
            return Drained.MARKERS_LOST
        sleep(LOOK_S)
    return Drained.NO


def without_markers(restarting: RestartingDriver) -> set[TopicPartition]:
    """
    Return the lonely partition if the target lost its transaction markers.

    A coordinator that finds no leader of a partition treats it as deleted and skips its markers, so
    a transaction hangs there (seen with Kafka 4.3.1: "Couldn't find leader endpoint"). If the next
    transaction of the same producer is aborted, it is aborted, too, and its offset counts. The
    mirror stops the partition and logs it; the records that it copied until then must be correct.
    """
    lonely = TopicPartition(LONELY, 0)
    stopped = restarting.found("partition.stopped", cause=MARKERS_LOST, partition=str(lonely))
    return {lonely} if stopped else set()


def behind(site: Site) -> list[str]:
    """Describe the partitions that are not completely mirrored."""
    try:
        found = positions(site)
    except MirrorError as exc:
        return [f"no progress for {STALL_S:.0f} s, and the positions cannot be read: {exc}"]
    return [
        f"no progress for {STALL_S:.0f} s: {one} is at {found[one]}, ends at {end}"
        for one, end in source_ends(site.view).items()
        if found[one] < end
    ]


def write_evidence(site: Site, folder: Path) -> None:
    """Write what Kafka's own tools report about a flow that makes no progress."""
    folder.mkdir(parents=True, exist_ok=True)
    questions: Mapping[str, tuple[str, ...]] = {
        "transactions": ("TransactionsCommand", "list"),
        "shadow": ("ConsumerGroupCommand", "--describe", "--group", FLOW.shadow_group),
        **{
            f"hanging-{node}": ("TransactionsCommand", "find-hanging", "--broker-id", str(node))
            for node in site.target.spec.broker_ids
        },
    }
    for name, question in questions.items():
        with suppress(TimeoutError, ClusterFailed, OSError):
            done = site.target.tool(*question)
            (folder / f"{name}.txt").write_text(f"{done.stdout}\n{done.stderr}")
    members = site.source.tool(
        "ConsumerGroupCommand", "--describe", "--members", "--verbose", "--group", FLOW.source_group
    )
    (folder / "members.txt").write_text(f"{members.stdout}\n{members.stderr}")
    view = site.view
    with suppress(MirrorError):
        state = {
            "ends": {str(one): end for one, end in source_ends(view).items()},
            "positions": {str(one): at for one, at in positions(site).items()},
        }
        (folder / "positions.json").write_text(json.dumps(state, indent=1))
