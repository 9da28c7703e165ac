"""Decides which quarantined records can be replayed now, and why the others cannot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import time_ns
from typing import NamedTuple

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


class Key(NamedTuple):
    """
    Which record it is. It may be in the quarantine twice.

    Attributes:
        offset: On the source.
        copy: Its number among the copies that a message handler made of one record.
    """

    source: TopicPartition
    offset: int
    topic_id: str
    copy: int


_Position = tuple[int, ShadowMetadata, OffsetMap] | str
"""Next offset, metadata and offset map of a remote partition; or what is wrong with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """
    What can be done with a quarantined record. It has no content of the record.

    Attributes:
        places: Where it is in the quarantine: twice, if it was moved twice.
        refusal: Why it cannot be replayed now; empty if it can.
    """

    key: Key
    places: list[Place]
    refusal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """
    What a decision about records needs to know.

    Attributes:
        pairs: Remote partition by source partition.
        shadows: Shadow offset by remote partition.
        segments: Records of the offset map topic, by key.
        refused: Why the target refused a record, by record.
        limits, positions: Of the copies that were asked for so far.
    """

    pairs: Pairs
    shadows: Mapping[TopicPartition, GroupOffset | ShadowOffset]
    segments: Mapping[str, bytes]
    refused: Mapping[Key, str]
    limits: dict[str, TopicLimits | None] = field(default_factory=dict)
    positions: dict[TopicPartition, _Position] = field(default_factory=dict)

    def position(self, remote: TopicPartition) -> _Position:
        """Return the position of a remote partition."""
        if remote not in self.positions:
            self.positions[remote] = _decoded(remote, self.shadows.get(remote), self.segments)
        return self.positions[remote]


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
        Return what can be done with each record that was not replayed yet, in their order.

        The records are read one after the other: memory has their keys and places.

        Args:
            is_wanted: Decides by the name of a source topic.
            shadows: Shadow offsets by remote partition.
            refused: Why the target refused a record when it was sent.

        Raises:
            ConfigError: There is no quarantine.
            RestartTask: The target did not answer.
        """
        config = target_admin(self._settings)
        metadata = ClusterMetadata(config, side=Side.TARGET)
        known = _Known(
            pairs=pairs,
            shadows=shadows,
            segments=whole_map(metadata, self._settings.flow, config),
            refused=refused,
        )
        found: dict[Key, Verdict] = {}
        replayed: set[Key] = set()
        sources: dict[TopicPartition, TopicPartition] = {}  # one object for all of its records
        for held in quarantined(self._settings, is_wanted):
            key = key_of(held)
            if held.is_replayed:
                replayed.add(key)
            elif key in found:
                found[key].places.append(held.place)
            else:
                key = key._replace(source=sources.setdefault(key.source, key.source))
                refusal = self._refusal(held, known)
                found[key] = Verdict(key=key, places=[held.place], refusal=refusal)
        return [one for key, one in found.items() if key not in replayed]

    def _refusal(self, held: Held, known: _Known) -> str:
        """Return why a record cannot be replayed now; empty if it can."""
        remote = known.pairs.get(held.record.source)
        if remote is None:
            return "the flow does not mirror its partition now"
        if held.record.code == FAILED:
            return "its message handler failed; the copies that it makes are not known"
        return (
            _not_of_this_copy(held, known.position(remote))
            or known.refused.get(key_of(held), "")
            or self._still_refused(held, remote, known)
        )

    def _still_refused(self, held: Held, remote: TopicPartition, known: _Known) -> str:
        if remote.topic not in known.limits:
            known.limits[remote.topic] = self._target.limits({remote.topic}).get(remote.topic)
        limits = known.limits[remote.topic]
        if limits is None:
            return f"DESCRIBE_CONFIGS on {remote.topic} is not granted, or it is gone"
        now_ms, sender = time_ns() // 1_000_000, sender_limits(self._settings)
        refused = first_refused(run_of(held), remote.topic, limits, sender, now_ms=now_ms)
        return "" if refused is None else f"{refused.code}: {refused.reason}"


def _decoded(
    remote: TopicPartition,
    shadow: GroupOffset | ShadowOffset | None,
    segments: Mapping[str, bytes],
) -> _Position:
    if shadow is None:
        return "its partition has no position"
    try:
        written = decode(shadow.metadata)
        offsets = OffsetMap(segments_of(segments, remote), MapTail.decode(written.tail))
    except ValueError as exc:
        return f"the position of its partition is not ours: {exc}"
    return shadow.position.next_offset, written, offsets


def _not_of_this_copy(held: Held, position: _Position) -> str:
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
    return Key(one.source, one.offset, one.topic_id, one.copy)


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
