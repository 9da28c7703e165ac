"""What must hold at every moment, checked from outside the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eos_mirror.core.handlers import FAILED, Message
from eos_mirror.core.map_records import segments_of, start_of
from eos_mirror.core.metadata import decode
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.quarantine import QuarantinedRecord, decode_quarantined
from eos_mirror.core.records import TopicPartition, TopicRecord
from eos_mirror.ports import ShadowOffset
from tests.engine.source_cluster import SourceEntry, SourceLog
from tests.engine.stage import Stage, remote_of
from tests.engine.target_log import Record


class Violation(AssertionError):  # noqa: N818 (a finding)
    """The guarantee does not hold."""


class Oracle:
    """
    Compares both clusters, partition by partition.

    Attributes:
        originals: Ids and logs of source topics that were created again, in order. Records of the
            new topic that were mirrored before this was noticed are checked separately.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.originals: dict[TopicPartition, list[tuple[str, SourceLog]]] = {}
        self._seen = -1
        self._checked: dict[TopicPartition, tuple[int, ShadowOffset | None]] = {}

    def forget(self, source: TopicPartition) -> None:
        """Keep the id and log of a topic that is about to be deleted and created again."""
        self.originals.setdefault(source, []).append(self._now(source))

    def _now(self, source: TopicPartition) -> tuple[str, SourceLog]:
        return self._stage.source.topic_ids[source.topic], self._stage.log(source)

    def check(self) -> None:
        """Raise Violation unless everything holds now. Checks only what changed."""
        target = self._stage.target
        if self._seen == target.coordinator.changes:
            return
        self._seen = target.coordinator.changes
        entries = target.decided_map()
        offsets = target.decided_offsets()
        for source in self._stage.partitions:
            remote = remote_of(source)
            decided = target.decided_records(remote)
            self._check_visible(remote, decided)
            shadow = offsets.get(remote)
            state = (len(decided), shadow)
            if source in self.originals:
                self._check_prefix_of_original(source, decided)
            elif self._checked.get(source) != state:
                self._check_partition(source, decided, shadow, entries)
                self._checked[source] = state

    def _check_visible(self, remote: TopicPartition, decided: Sequence[tuple[int, Record]]) -> None:
        visible = self._stage.target.logs[remote].visible()
        if visible != decided[: len(visible)]:
            raise Violation(f"{remote}: readers see what is not decided: {visible} {decided}")

    def _check_partition(
        self,
        source: TopicPartition,
        decided: Sequence[tuple[int, Record]],
        shadow: ShadowOffset | None,
        entries: Mapping[str, bytes],
    ) -> None:
        remote = remote_of(source)
        start = start_of(entries, remote)
        if start is None:
            if decided or shadow is not None:
                raise Violation(f"{remote}: mirrored without a start record")
            return
        moved = self.quarantined(source)
        visible = self._stage.log(source).visible(start.next_offset)
        self._check_quarantined(source, moved, visible)
        expected = [
            copy
            for entry in visible
            if entry.offset not in moved
            for copy in self.copies(source, entry)
        ]
        _compare(remote, decided, expected)
        if shadow is not None:
            _check_shadow(remote, shadow, decided, expected)
            _check_map(remote, shadow, decided, expected, entries)

    def copies(self, source: TopicPartition, entry: SourceEntry) -> list[SourceEntry]:
        """Return the copies of a record, with its offset; the record itself without a handler."""
        handler, record = self._stage.handler, entry.record
        if handler is None or record is None:
            return [entry]
        message = Message(
            topic=source.topic,
            partition=source.partition,
            offset=entry.offset,
            timestamp=record.timestamp_ms,
            key=record.key,
            value=record.value,
            headers=list(record.headers or ()),
        )
        try:
            made = list(handler.handle(message))
        except ValueError:  # it belongs into the quarantine: nothing may pass it
            return [entry]
        return [
            replace(
                entry,
                record=Record(one.key, one.value, tuple(one.headers) or None, one.timestamp),
            )
            for one in made
        ]

    def quarantined(self, source: TopicPartition) -> dict[int, list[QuarantinedRecord]]:
        """Return what the quarantine has of a partition, by upstream offset."""
        where = TopicPartition(self._stage.quarantine or "", 0)
        if where not in self._stage.target.logs:
            return {}
        found: dict[int, list[QuarantinedRecord]] = {}
        for _, record in self._stage.target.decided_records(where):
            headers = None if record.headers is None else list(record.headers)
            one = decode_quarantined(TopicRecord(record.key, record.value, headers))
            if one.source == source:
                found.setdefault(one.offset, []).append(one)
        return found

    def _check_quarantined(
        self,
        source: TopicPartition,
        moved: Mapping[int, Sequence[QuarantinedRecord]],
        visible: Sequence[SourceEntry],
    ) -> None:
        """Expect all copies of a record there, once, or the record for which the handler failed."""
        originals = {entry.offset: entry for entry in visible}
        for offset, some in moved.items():
            has_failed = some[0].code == FAILED
            entry = originals[offset]
            wanted = [entry] if has_failed else self.copies(source, entry)
            if [_record_of(one) for one in some] != [one.record for one in wanted]:
                raise Violation(f"{source} offset={offset}: twice or changed in the quarantine")

    def _check_prefix_of_original(
        self, source: TopicPartition, decided: Sequence[tuple[int, Record]]
    ) -> None:
        """Expect records of the first topic in order, then maybe of later ones; none twice."""
        start = start_of(self._stage.target.decided_map(), remote_of(source))
        if start is None:
            if decided:
                raise Violation(f"{source}: mirrored without a start record")
            return
        logs = [*self.originals[source], self._now(source)]
        began = next(i for i, (topic_id, _) in enumerate(logs) if topic_id == start.topic_id)
        old = [entry.record for entry in logs[began][1].visible(start.next_offset)]
        new = [entry.record for _, log in logs[began + 1 :] for entry in log.visible(0)]
        got = [record for _, record in decided]
        count = sum(record in old for record in got)
        places = [new.index(record) for record in got[count:] if record in new]
        if got[:count] != old[:count] or len(places) != len(got) - count:
            raise Violation(f"{source}: not a prefix of the topic before it was created again")
        if places != sorted(set(places)):
            raise Violation(f"{source}: records of the new topic repeated or out of order")

    def reached(self, source: TopicPartition) -> bool:
        """Return whether everything is mirrored: the shadow offset is at the source's end."""
        shadow = self._stage.target.decided_offsets().get(remote_of(source))
        return shadow is not None and shadow.position.next_offset == self._stage.log(source).stable


def _record_of(one: QuarantinedRecord) -> Record:
    headers = None if one.headers is None else tuple(one.headers)
    return Record(one.key, one.value, headers, one.timestamp)


def _compare(
    remote: TopicPartition,
    decided: Sequence[tuple[int, Record]],
    expected: Sequence[SourceEntry],
) -> None:
    for place, (offset, record) in enumerate(decided):
        wanted = expected[place].record if place < len(expected) else None
        if record != wanted:
            raise Violation(f"{remote} offset={offset}: has {record}, not {wanted}")


def _check_shadow(
    remote: TopicPartition,
    shadow: ShadowOffset,
    decided: Sequence[tuple[int, Record]],
    expected: Sequence[SourceEntry],
) -> None:
    next_offset = shadow.position.next_offset
    below = sum(entry.offset < next_offset for entry in expected)
    if below != len(decided):
        raise Violation(
            f"{remote}: next_offset={next_offset} covers {below} records, "
            f"but {len(decided)} are there"
        )


def _check_map(
    remote: TopicPartition,
    shadow: ShadowOffset,
    decided: Sequence[tuple[int, Record]],
    expected: Sequence[SourceEntry],
    entries: Mapping[str, bytes],
) -> None:
    """Check that every mirrored offset translates to the offset of its record, and back."""
    tail = MapTail.decode(decode(shadow.metadata).tail)
    try:
        offset_map = OffsetMap(segments_of(entries, remote), tail)
    except ValueError as exc:
        raise Violation(f"{remote}: {exc}") from exc
    if offset_map.upstream_end != shadow.position.next_offset:
        raise Violation(f"{remote}: map ends at {offset_map.upstream_end}, not {shadow.position}")
    firsts: dict[int, int] = {}
    for (downstream, _), entry in zip(decided, expected, strict=False):
        there, back = offset_map.translate(entry.offset), offset_map.reverse(downstream)
        first = firsts.setdefault(entry.offset, downstream)
        if (there, back) != (first, entry.offset):
            raise Violation(
                f"{remote}: {entry.offset} is at {downstream}, the map says {there}, back {back}"
            )
