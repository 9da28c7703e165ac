"""Decides which quarantined records can be replayed now, and why the others cannot."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import time_ns

from eos_mirror.core.handlers import FAILED
from eos_mirror.core.map_records import segments_of
from eos_mirror.core.metadata import ShadowMetadata, decode
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.quarantine import Place
from eos_mirror.core.records import DecodedRun, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.core.topic_limits import TopicLimits, first_refused
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.offset_maps import whole_map
from eos_mirror.kafka.target import KafkaTarget
from eos_mirror.operate.carry_positions import Pairs
from eos_mirror.operate.quarantine import Held, quarantined
from eos_mirror.ports import GroupOffset, ShadowOffset
from eos_mirror.settings.clients import sender_limits, target_admin
from eos_mirror.settings.model import FlowSettings

Key = tuple[TopicPartition, int, str, int]
"""Which record: source partition, offset, topic id, and number of the copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """
    What can be done with a quarantined record.

    Attributes:
        places: Where it is in the quarantine: twice, if it was moved twice.
        refusal: Why it cannot be replayed now; empty if it can.
    """

    held: Held
    places: Sequence[Place]
    refusal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """
    What a decision about records needs to know.

    Attributes:
        pairs: Remote partition by source partition.
        positions: Next offset, metadata and offset map by remote partition; or what is wrong.
        refused: Why the target refused a record, by record.
    """

    pairs: Pairs
    limits: Mapping[str, TopicLimits]
    positions: Mapping[TopicPartition, "tuple[int, ShadowMetadata, OffsetMap] | str"]
    refused: Mapping[Key, str]


class ReplayPlan:
    """Judges the records in the quarantine of one flow. Writes nothing."""

    def __init__(self, settings: FlowSettings, target: KafkaTarget) -> None:
        self._settings, self._target = settings, target

    def verdicts(
        self,
        is_wanted: Callable[[str], bool],
        pairs: Pairs,
        shadows: Mapping[TopicPartition, GroupOffset | ShadowOffset],
        refused: Mapping[Key, str],
    ) -> list[Verdict]:
        """
        Return what can be done with each record that was not replayed yet.

        Args:
            is_wanted: Decides by the name of a source topic.
            shadows: Shadow offsets by remote partition.
            refused: Why the target refused a record when it was sent.

        Raises:
            ConfigError: There is no quarantine.
            RestartTask: The target did not answer.
        """
        waiting: defaultdict[Key, list[Held]] = defaultdict(list)
        for held in quarantined(self._settings, is_wanted):
            waiting[key_of(held)].append(held)
        left = [some for some in waiting.values() if not any(one.is_replayed for one in some)]
        remotes = {pairs[some[0].record.source] for some in left if some[0].record.source in pairs}
        known = _Known(
            pairs=pairs,
            limits=self._target.limits({remote.topic for remote in remotes}),
            positions=self._positions(remotes, shadows),
            refused=refused,
        )
        return [
            Verdict(
                held=some[0],
                places=[one.place for one in some],
                refusal=self._refusal(some[0], known),
            )
            for some in left
        ]

    def _positions(
        self,
        remotes: Iterable[TopicPartition],
        shadows: Mapping[TopicPartition, GroupOffset | ShadowOffset],
    ) -> dict[TopicPartition, tuple[int, ShadowMetadata, OffsetMap] | str]:
        config = target_admin(self._settings)
        metadata = ClusterMetadata(config, side=Side.TARGET)
        entries = whole_map(metadata, self._settings.flow, config)
        found: dict[TopicPartition, tuple[int, ShadowMetadata, OffsetMap] | str] = {}
        for remote in remotes:
            shadow = shadows.get(remote)
            if shadow is None:
                found[remote] = "its partition has no position"
                continue
            try:
                written = decode(shadow.metadata)
                offsets = OffsetMap(segments_of(entries, remote), MapTail.decode(written.tail))
            except ValueError as exc:
                found[remote] = f"the position of its partition is not ours: {exc}"
            else:
                found[remote] = (shadow.position.next_offset, written, offsets)
        return found

    def _refusal(self, held: Held, known: _Known) -> str:
        """Return why a record cannot be replayed now; empty if it can."""
        remote = known.pairs.get(held.record.source)
        if remote is None:
            return "the flow does not mirror its partition now"
        if held.record.code == FAILED:
            return "its message handler failed; the copies that it makes are not known"
        return (
            _not_of_this_copy(held, known.positions[remote])
            or known.refused.get(key_of(held), "")
            or self._still_refused(held, remote, known.limits.get(remote.topic))
        )

    def _still_refused(self, held: Held, remote: TopicPartition, limits: TopicLimits | None) -> str:
        if limits is None:
            return f"DESCRIBE_CONFIGS on {remote.topic} is not granted, or it is gone"
        now_ms, sender = time_ns() // 1_000_000, sender_limits(self._settings)
        refused = first_refused(run_of(held), remote.topic, limits, sender, now_ms=now_ms)
        return "" if refused is None else f"{refused.code}: {refused.reason}"


def _not_of_this_copy(held: Held, position: "tuple[int, ShadowMetadata, OffsetMap] | str") -> str:
    """Return why a record does not belong into a copy; empty if it does."""
    if isinstance(position, str):
        return position
    record, (next_offset, written, offsets) = held.record, position
    if written.topic_id != record.topic_id:
        return "it is of an earlier topic with the same name"
    if record.offset >= next_offset:
        return "its topic is mirrored again, and has not come to it yet"
    if offsets.original_of(offsets.copy_of(record.offset)) == record.offset:
        return "it is in the copy: its topic was mirrored again"
    return ""


def key_of(held: Held) -> Key:
    """Return which record this is; it may be in the quarantine twice."""
    one = held.record
    return (one.source, one.offset, one.topic_id, one.copy)


def run_of(held: Held) -> DecodedRun:
    """Return a run of this record, as it was refused."""
    record = held.record
    return DecodedRun(
        partition=record.source,
        offsets=[record.offset],
        timestamps=[record.timestamp],
        keys=[record.key],
        values=[record.value],
        headers=[record.headers],
        leader_epoch=None,
        size_bytes=len(record.value or b""),
    )
