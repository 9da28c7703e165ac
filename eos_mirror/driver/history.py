"""Finds what a flow mirrored before, from the positions that it left on the clusters."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.map_records import StartRecord
from eos_mirror.core.metadata import decode_group
from eos_mirror.core.plan import Conflict, Route
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.errors import RetriableError
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.retry import retrying
from eos_mirror.ports import Unstable

DECIDED_WITHIN = timedelta(seconds=2)
"""A task spills its map in less. A dead task's transaction is open until a new task fences it."""


class Mirrored(NamedTuple):
    """
    Source topics whose remote topic a flow began to write, now or in an earlier run.

    Attributes:
        is_whole: False while a transaction is open on the offset map. Topics that began in it, or
            after it, are missing.
    """

    topics: set[str]
    is_whole: bool = True


def mirrored_before(
    clusters: FlowClusters, routes: Sequence[Route], *, mode: DeliveryMode
) -> Mirrored:
    """
    Return what this flow mirrored of these routes.

    Raises:
        SourceUnavailable, TargetUnavailable: The cluster did not answer.
    """
    if not routes:
        return Mirrored(set())
    if mode is not DeliveryMode.EXACTLY_ONCE:
        return Mirrored(_committed(clusters, [route.source_topic for route in routes], mode))
    starts, is_whole = _starts(clusters)
    begun = {remote.topic for remote in starts}
    found = {route.source_topic for route in routes if route.remote_topic in begun}
    return Mirrored(found, is_whole)


def owners(
    clusters: FlowClusters, contested: Sequence[Conflict], *, mode: DeliveryMode
) -> set[str]:
    """
    Find which of several source topics for one remote topic this flow has mirrored.

    Returns:
        One topic for each conflict, or none if the clusters do not show which one it is.

    Raises:
        SourceUnavailable, TargetUnavailable: The cluster did not answer.
    """
    names = sorted({topic for one in contested for topic in one.source_topics})
    if mode is not DeliveryMode.EXACTLY_ONCE:
        begun = _committed(clusters, names, mode)
        known = {(one.remote_topic, name) for one in contested for name in begun}
    else:
        topics = clusters.source_metadata.topics(names)
        starts, _ = _starts(clusters)
        made = {(remote.topic, start.topic_id) for remote, start in starts.items()}
        known = {
            (remote, name)
            for remote, topic_id in made
            for name, topic in topics.items()
            if topic.topic_id == topic_id
        }
    found = [
        [name for name in one.source_topics if (one.remote_topic, name) in known]
        for one in contested
    ]
    return {names[0] for names in found if len(names) == 1}


def _starts(clusters: FlowClusters) -> tuple[Mapping[TopicPartition, StartRecord], bool]:
    """Return the starts on the offset map, and whether these are all: see `Mirrored.is_whole`."""

    def ask(_: Deadline) -> Mapping[TopicPartition, StartRecord]:
        starts = clusters.target.starts()
        if isinstance(starts, Unstable):
            raise RetriableError(f"{clusters.flow}: a transaction is open on the offset map")
        return starts

    try:
        return retrying(ask, within=DECIDED_WITHIN), True
    except RetriableError:
        return clusters.target.decided_starts(), False


def _committed(clusters: FlowClusters, names: Sequence[str], mode: DeliveryMode) -> set[str]:
    """
    Return the topics with a position that this flow committed.

    Positions set by hand do not count: they only say where to start. Positions of an earlier topic
    with the same name do not count either: the task decides about them. MirrorMaker 2 stores no
    topic id, so every position of a source connector counts.
    """
    topics = clusters.source_metadata.topics(names)
    wanted = [TopicPartition(name, p) for name in topics for p in range(topics[name].partitions)]
    offsets = retrying(partial(clusters.offsets_by_source(mode).read, wanted))
    if mode is DeliveryMode.SOURCE:
        return {partition.topic for partition in offsets}
    return {
        partition.topic
        for partition, offset in offsets.items()
        if (metadata := decode_group(offset.metadata)) is not None
        and metadata.topic_id == topics[partition.topic].topic_id
    }
