"""What a start does, before its tasks, with copies of a source connector or a MirrorMaker 2."""

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.cluster_facts import gather
from eos_mirror.driver.flow_clusters import FlowClusters, open_clusters
from eos_mirror.driver.mm2_workers import Mm2Workers, dedicated_mm2, source_connector
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import UnsafeError
from eos_mirror.kafka.topic_writer import WITHIN
from eos_mirror.operate.adopt import pairs_of, switch_of
from eos_mirror.operate.origins import Origin
from eos_mirror.operate.takeover import Takeover
from eos_mirror.ports import GroupOffset
from eos_mirror.runtime.control import EventSink
from eos_mirror.runtime.leases import DEFAULT_TTL
from eos_mirror.settings.model import FlowSettings

MATCH_LAST: Final = 1000

QUIET: Final = DEFAULT_TTL + timedelta(seconds=5)
"""If the last run did not stop its tasks: they stop by themselves when their leases are over."""


def take_over_source(settings: FlowSettings, *, on_event: EventSink) -> None:
    """
    Take over what was copied since this flow ran, or before it ran; the caller leads the flow.

    Args:
        on_event: Receives log events.

    Raises:
        UnsafeError: A copy cannot be continued with certainty. Nothing was taken over.
        RestartTask: A cluster did not answer.
    """
    flow, began = str(settings.flow), time.monotonic()

    def tell(name: str, fields: Mapping[str, Any]) -> None:
        on_event(name, {"flow": flow, **fields})

    noted = open_clusters(settings).mode.read()
    count = _take_over(settings, noted, tell)
    if count or noted is DeliveryMode.SOURCE:
        took_s = round(time.monotonic() - began, 3)
        tell("flow.adopted", {"partitions": count, "took_s": took_s})
    if settings.is_source_connector:
        _store_positions(settings)


def _refuse_at_least_once(settings: FlowSettings, workers: Mm2Workers) -> None:
    """
    Refuse to take turns with a MirrorMaker 2 that writes at least once.

    It also reads positions of transactions that were aborted, and would skip their records.
    """
    facts = workers.facts()
    if facts.exists and not facts.is_stopped and not facts.tasks_ever:
        raise UnsafeError(
            f"{settings.flow}: MirrorMaker 2 writes at least once, so it cannot take turns with "
            f"exactly.once.source.support = enabled. Enable it for MirrorMaker 2, too, and run it "
            f"once; or continue its copies with eos-mirror adopt --from mm2."
        )


def _take_over(settings: FlowSettings, noted: DeliveryMode | None, tell: EventSink) -> int:
    """Return how many copies were taken over."""
    ran_as_source = noted is DeliveryMode.SOURCE

    def origin(clusters: FlowClusters) -> Origin:
        topics = clusters.target_topics
        if ran_as_source:
            return source_connector(settings, topics=topics)
        workers = Mm2Workers(settings, dedicated_mm2(settings.flow), topics=topics)
        _refuse_at_least_once(settings, workers)
        return workers

    takeover = Takeover(
        settings,
        origin,
        match_last=MATCH_LAST,
        on_event=tell,
        leads=True,
        takes_turns=settings.is_source_connector,
    )
    wait = {"quiet_s": QUIET.total_seconds()}
    return len(takeover.run(quiet=QUIET, on_quiet=lambda: tell("flow.adopting", wait)))


def _store_positions(settings: FlowSettings) -> None:
    """
    Store our positions where MirrorMaker 2 reads them, if it has others.

    A task stores a position with the next record of its partition, which may come late.
    """
    clusters = open_clusters(settings)
    topics = TopicSync(settings, clusters, on_event=lambda *_: None)
    within, mode = settings.admin_timeout, DeliveryMode.EXACTLY_ONCE
    facts = gather(clusters, topics.plan, mode=mode, within=within)
    pairs = pairs_of(facts)
    if not facts.has_claims_topic or not _missing(clusters, pairs):
        return
    topics.begin()
    with switch_of(settings, clusters, facts).fenced():
        clusters.connect_offsets.commit(_missing(clusters, pairs), within=WITHIN)


def _missing(
    clusters: FlowClusters, pairs: Mapping[TopicPartition, TopicPartition]
) -> dict[TopicPartition, GroupOffset]:
    """Return our positions that MirrorMaker 2 does not have."""
    ours = clusters.shadow_offsets.read(list(pairs.values()))
    stored = clusters.connect_offsets.read(list(pairs))
    return {
        source: ours[remote]
        for source, remote in pairs.items()
        if remote in ours and not _is_stored(source, ours[remote], stored)
    }


def _is_stored(
    source: TopicPartition, ours: GroupOffset, stored: Mapping[TopicPartition, GroupOffset]
) -> bool:
    known = stored.get(source)
    return known is not None and known.position.next_offset == ours.position.next_offset
