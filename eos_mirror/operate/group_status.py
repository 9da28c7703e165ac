"""Reads the state of a flow's groups from its clusters, whether or not the flow runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eos_mirror.core.checkpoints import joined
from eos_mirror.core.flow import INTERNAL_PREFIX
from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.flow_clusters import open_clusters
from eos_mirror.kafka.group_offsets import HAS_MEMBERS, GroupOffsets
from eos_mirror.operate.status import routes_of
from eos_mirror.ports import GroupOffset
from eos_mirror.settings import clients
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.plugins import group_filter_of
from eos_mirror.tasks.offset_translation import Offsets, OffsetTranslation, Translated

SYNC_IS_OFF = "sync.group.offsets.enabled is false"
NOT_MIRRORED = "nothing of it is mirrored yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPartition:
    """
    One partition for which a group has committed an offset.

    Attributes:
        committed: The committed offset on the source.
        upstream: The highest offset up to `committed` that can be translated, or the first
            mirrored one, if the source has no earlier record either; None if there is none.
        downstream: `upstream` translated to the target.
        there: The group's committed offset on the target; None without one.
    """

    source: TopicPartition
    remote: TopicPartition
    committed: int
    upstream: int | None
    downstream: int | None
    there: int | None

    @property
    def is_ahead(self) -> bool:
        """Return whether the group has read records that are not mirrored yet."""
        return self.upstream is not None and self.upstream < self.committed

    @property
    def is_behind(self) -> bool:
        """Return whether on the target it would read again what it has read on the source."""
        return self.downstream is not None and (self.there is None or self.there < self.downstream)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """
    The state of one group.

    Attributes:
        partitions: By topic and number; none if the group cannot be read on the source.
        reason: Why it cannot be read on the source, or its offsets cannot be translated or not be
            synced on the target; empty if there is no obstacle.
    """

    group: str
    partitions: Sequence[GroupPartition]
    reason: str

    @property
    def is_skipped(self) -> bool:
        """Return whether the group cannot be read on the source."""
        return not self.partitions

    @property
    def is_untranslated(self) -> bool:
        """Return whether the group has an offset without a translation."""
        return any(one.upstream is None for one in self.partitions)


def group_statuses(settings: FlowSettings) -> list[GroupStatus]:
    """
    Return the configured groups that have offsets on mirrored topics, by name.

    Groups whose offsets cannot be read are included. Reads only. Call it in a process that may
    exit on an error: see `GroupOffsets`.

    Raises:
        SourceUnavailable, TargetUnavailable: A cluster did not answer in time.
        NotAuthorized: Not even Describe is allowed.
    """
    routes = routes_of(settings, open_clusters(settings))
    found, skipped = _committed(settings, routes)
    translated = _translated(settings, found, routes)
    checkpoints: dict[str, dict[TopicPartition, Checkpoint]] = {}
    for one in translated.checkpoints:
        checkpoints.setdefault(one.group, {})[one.partition] = one
    there, kept = _on_target(settings, found)
    statuses = [GroupStatus(group=g, partitions=[], reason=why) for g, why in skipped.items()]
    for group, offsets in found.items():
        partitions = [
            _partition(
                source,
                TopicPartition(routes[source.topic], source.partition),
                offset,
                checkpoints=checkpoints.get(group, {}),
                there=there.get(group, {}),
            )
            for source, offset in sorted(offsets.items())
        ]
        reason = _reason(group, partitions, translated, kept.get(group, ""))
        statuses.append(GroupStatus(group=group, partitions=partitions, reason=reason))
    return sorted(statuses, key=lambda one: one.group)


def _on_target(settings: FlowSettings, found: Offsets) -> tuple[Offsets, dict[str, str]]:
    """Return the offsets of these groups on the target, and why they are not synced there."""
    target = GroupOffsets(clients.target_admin(settings), side=Side.TARGET)
    there = target.read(found)
    refused = dict(target.refused)
    free = target.without_members(found)
    reasons = dict.fromkeys(found.keys() - free, HAS_MEMBERS)
    reasons.update({group: one.reason for group, one in {**refused, **target.refused}.items()})
    if not settings.groups.sync_offsets:
        reasons = dict.fromkeys(found, SYNC_IS_OFF)
    return there, reasons


def _partition(
    source: TopicPartition,
    remote: TopicPartition,
    offset: GroupOffset,
    *,
    checkpoints: Mapping[TopicPartition, Checkpoint],
    there: Mapping[TopicPartition, GroupOffset],
) -> GroupPartition:
    checkpoint, on_target = checkpoints.get(remote), there.get(remote)
    return GroupPartition(
        source=source,
        remote=remote,
        committed=offset.position.next_offset,
        upstream=None if checkpoint is None else checkpoint.upstream,
        downstream=None if checkpoint is None else checkpoint.downstream,
        there=None if on_target is None else on_target.position.next_offset,
    )


def _committed(settings: FlowSettings, routes: Mapping[str, str]) -> tuple[Offsets, dict[str, str]]:
    """Return the offsets of groups on mirrored topics, and why other groups cannot be read."""
    offsets = GroupOffsets(clients.source_admin(settings), side=Side.SOURCE)
    is_wanted = group_filter_of(settings).matches
    wanted = {g for g in offsets.names() if is_wanted(g) and not g.startswith(INTERNAL_PREFIX)}
    found = {
        group: {p: offset for p, offset in of.items() if p.topic in routes}
        for group, of in offsets.read(wanted).items()
    }
    skipped = {group: one.reason for group, one in offsets.refused.items()}
    return {group: of for group, of in found.items() if of}, skipped


def _translated(settings: FlowSettings, found: Offsets, routes: Mapping[str, str]) -> Translated:
    translation = OffsetTranslation(
        settings.flow,
        clients.source_admin(settings),
        clients.target_admin(settings),
        syncs_topic=clients.syncs_topic(settings),
    )
    return translation.translate(found, routes)


def _reason(
    group: str, partitions: Iterable[GroupPartition], translated: Translated, kept: str
) -> str:
    """Return why partitions of a group are not translated, and why its offsets are not synced."""
    before = translated.before.get(group, {})
    untranslated = [
        before.get(one.source)
        or f"{one.source}: {translated.reasons.get(one.remote, NOT_MIRRORED)}"
        for one in partitions
        if one.upstream is None
    ]
    return "; ".join(filter(None, [joined(untranslated), kept]))
