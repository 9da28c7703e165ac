"""What a flow mirrored before, by the positions that it left on the clusters."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.metadata import decode_group
from eos_mirror.core.plan import Route
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import RetriableError
from eos_mirror.kafka.metadata import PATIENCE
from eos_mirror.kafka.retry import retrying
from eos_mirror.operate.facts import FlowClusters
from eos_mirror.ports import Unstable

DECIDED_WITHIN = timedelta(seconds=2)
"""A task spills its map in less. A transaction of a dead task ends when a new task fences it."""


def mirrored_before(
    clusters: FlowClusters, routes: Sequence[Route], *, mode: DeliveryMode
) -> set[str] | None:
    """
    Source topics whose remote topic this flow has begun to write, in this run or an earlier one.

    Returns:
        Of these routes; None while the clusters cannot tell, because a transaction is open on the
        offset map.

    Raises:
        SourceUnavailable, TargetUnavailable: No answer.
    """
    if not routes:
        return set()
    if mode is DeliveryMode.AT_LEAST_ONCE:
        return _committed(clusters, routes)
    begun = _begun(clusters)
    if begun is None:
        return None
    return {route.source_topic for route in routes if route.remote_topic in begun}


def _begun(clusters: FlowClusters) -> set[str] | None:
    """Remote topics with a start record."""

    def ask() -> set[str]:
        starts = clusters.target.starts()
        if isinstance(starts, Unstable):
            raise RetriableError(f"{clusters.flow}: a transaction is open on the offset map")
        return {remote.topic for remote in starts}

    with suppress(RetriableError):
        return retrying(ask, within=DECIDED_WITHIN)
    return None


def _committed(clusters: FlowClusters, routes: Sequence[Route]) -> set[str]:
    """Topics with a position of ours; one that somebody set by hand is a wish for the start."""
    partitions = [
        TopicPartition(one.source_topic, p) for one in routes for p in range(one.partitions)
    ]
    offsets = retrying(lambda: clusters.source_offsets.read(partitions), within=PATIENCE)
    return {p.topic for p, offset in offsets.items() if decode_group(offset.metadata) is not None}
