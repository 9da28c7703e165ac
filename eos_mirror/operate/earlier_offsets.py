"""Translates offsets of records that were copied before a takeover, with earlier offset syncs."""

from collections.abc import Iterator, Mapping
from typing import Any

from eos_mirror.core.internal_records import OffsetSync
from eos_mirror.core.offset_syncs import UNTRANSLATABLE, Sync, SyncStore
from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.topic_reader import TopicReader
from eos_mirror.settings.clients import source_admin, target_admin
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.plugins import policy_of


def lower_bound(
    settings: FlowSettings, source: TopicPartition, offset: int, *, taken_over: int
) -> int | None:
    """
    Return where a group at this source offset resumes on the target, at the latest.

    A reader that starts there reads some records again, and skips none. MirrorMaker 2 translates
    in the same way.

    Args:
        taken_over: End of the remote partition when the flow took it over.

    Returns:
        None if no offset sync lies at or before the offset.

    Raises:
        SourceUnavailable, TargetUnavailable: A cluster did not answer in time.
        NotAuthorized: Read on a topic of offset syncs is missing.
    """
    store: SyncStore | None = None
    for sync in _syncs(settings, source):
        if sync.downstream > taken_over:
            continue
        if store is None:
            store = SyncStore(sync)
        else:
            store.add(sync)
    found = UNTRANSLATABLE if store is None else store.translate(offset)
    return None if found == UNTRANSLATABLE else min(found, taken_over)


def _syncs(settings: FlowSettings, source: TopicPartition) -> Iterator[Sync]:
    """
    Yield the syncs of one partition, as they were written.

    MirrorMaker 2 has them on the source, if it is not configured otherwise. It has them on the
    target, as the at-least-once mode does, with `offset-syncs.topic.location = target`.
    """
    flow, names = settings.flow, policy_of(settings).internal_topics
    places: list[tuple[Mapping[str, Any], str, str]] = [
        (source_admin(settings), names.offset_syncs(flow.target), flow.source_group),
        (target_admin(settings), names.offset_syncs(flow.source), flow.shadow_group),
    ]
    for config, topic, group in places:
        for key, value in TopicReader(config, topic, group=group).updates():
            try:
                one = OffsetSync.decode(key, value)
            except ValueError:  # other tools may write there
                continue
            if one.partition == source:
                yield Sync(one.upstream, one.downstream)
