"""Where a claimed partition resumes: at its shadow offset, at the start, or not at all."""

from collections.abc import Mapping, Sequence

from eos_mirror.core.map_records import StartRecord, segments_of, start_of
from eos_mirror.core.messages import MirrorConfig
from eos_mirror.core.metadata import ShadowMetadata, decode, is_handed_over
from eos_mirror.core.offset_map import MapTail
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.start_positions import FROM_THE_START, start_of_topic
from eos_mirror.errors import (
    FatalError,
    ForeignWriter,
    PartitionStopped,
    PositionLost,
    SourceDataLost,
)
from eos_mirror.ports import (
    UNSTABLE,
    PartitionEnd,
    ShadowOffset,
    SourceMetadata,
    Target,
    Unstable,
)
from eos_mirror.replication.config import Fencing
from eos_mirror.replication.lost_markers import split_partitions
from eos_mirror.replication.partition import Claimed, OwnedPartition, Resolved


class Positions:
    """Reads positions after a claim. Call it only for partitions that are claimed and fenced."""

    def __init__(
        self,
        config: MirrorConfig,
        target: Target,
        metadata: SourceMetadata,
        *,
        fencing: Fencing = Fencing.CLAIMS,
    ) -> None:
        self._config = config
        self._fencing = fencing
        self._target = target
        self._metadata = metadata

    def resolve(
        self, claimed: Sequence[Claimed]
    ) -> Mapping[TopicPartition, Resolved | Unstable | PartitionStopped]:
        """
        Find where claimed partitions resume, with one stable read for all.

        Returns:
            By source partition: where it resumes; `Unstable`: ask again; or why it stops.

        Raises:
            RestartTask: A cluster did not answer.
            FatalError: The claims topic is not the one the positions were written under.
        """
        remotes = [one.remote for one in claimed]
        shadows = self._target.shadow_offsets(remotes)
        ends = self._target.ends(remotes)
        new = [remote for remote in remotes if shadows[remote] is None]
        entries = {topic: self._target.map_entries(topic) for topic in {r.topic for r in new}}
        answers: dict[TopicPartition, Resolved | Unstable | PartitionStopped] = {}
        resumed: list[OwnedPartition] = []
        for one in claimed:
            shadow = shadows[one.remote]
            known = entries.get(one.remote.topic, {})
            try:
                if isinstance(shadow, Unstable) or not self._is_settled(ends[one.remote]):
                    answers[one.source] = UNSTABLE
                elif shadow is None:
                    answers[one.source] = (
                        UNSTABLE
                        if isinstance(known, Unstable)
                        else self._without_offset(one, known, ends[one.remote].stable)
                    )
                else:
                    resumed.append(self._resume(one, shadow, ends[one.remote]))
                    answers[one.source] = Resolved(owned=resumed[-1])
            except PartitionStopped as exc:
                answers[one.source] = exc
        if resumed and self._fencing is Fencing.CLAIMS:
            answers.update(split_partitions(self._config.flow, resumed, self._target))
        answers.update(self._moved_meanwhile(claimed, answers, shadows))
        return answers

    def _moved_meanwhile(
        self,
        claimed: Sequence[Claimed],
        answers: Mapping[TopicPartition, Resolved | Unstable | PartitionStopped],
        shadows: Mapping[TopicPartition, ShadowOffset | Unstable | None],
    ) -> dict[TopicPartition, Unstable]:
        """
        Return the stopped ones that have another shadow offset now.

        They lost nothing: the group took them from this task after it had read the offsets, and
        their next owner committed before it read the map, the ends or the last records.
        """
        stopped = [one for one in claimed if isinstance(answers[one.source], PartitionStopped)]
        if not stopped:
            return {}
        now = self._target.shadow_offsets([one.remote for one in stopped])
        return {one.source: UNSTABLE for one in stopped if now[one.remote] != shadows[one.remote]}

    def _is_settled(self, end: PartitionEnd) -> bool:
        """
        Return False while data markers of the partition's last writer are still in flight.

        Its offsets may be stable already. The markers would land between our records, but the map
        relies on our records being dense.
        """
        return end.is_decided or self._fencing is not Fencing.CLAIMS

    def _resume(self, one: Claimed, shadow: ShadowOffset, end: PartitionEnd) -> OwnedPartition:
        next_offset = shadow.position.next_offset
        where = f"{self._config.flow} {one.source} next_offset={next_offset}"
        metadata, tail = self._decoded(shadow, where)
        if metadata.claims_topic_id != self._config.claims_topic_id:
            raise FatalError(
                f"{where}: committed under another claims topic than "
                f"{self._config.flow.claims_topic}: it was deleted and created again, so an "
                f"older writer may be alive. docs/operations.md says how to start over."
            )
        if metadata.topic_id != one.topic_id:
            raise SourceDataLost(
                f"{where}: the source topic was deleted and created again "
                f"(id {metadata.topic_id} is now {one.topic_id})"
            )
        if tail.upstream_end != next_offset:
            raise PositionLost(
                f"{where}: the shadow offset was changed by hand: its map ends at "
                f"{tail.upstream_end}. Commit {tail.upstream_end} with the same metadata."
            )
        if end.written < (tail.downstream_end or 0):
            raise ForeignWriter(
                f"{where}: {one.remote} ends at {end.written}, but everything below "
                f"{tail.downstream_end} was committed before: the target lost its end. "
                f"docs/operations.md says how to start over."
            )
        return OwnedPartition(
            source=one.source,
            remote=one.remote,
            topic_id=one.topic_id,
            position=shadow.position,
            tail=tail,
            sequence=metadata.sequence + 1,
            committed=next_offset,
            committed_at=0.0,
        )

    def _decoded(self, shadow: ShadowOffset, where: str) -> tuple[ShadowMetadata, MapTail]:
        """Decode what a task left for its successor; raise PositionLost if it is not that."""
        if is_handed_over(shadow.metadata):
            raise PositionLost(
                f"{where}: MirrorMaker 2 continues this copy. To take it back, stop MirrorMaker 2 "
                f"and run `eos-mirror adopt FILE '{self._config.flow}' --from mm2`."
            )
        try:
            metadata = decode(shadow.metadata)
            return metadata, MapTail.decode(metadata.tail)
        except ValueError as exc:
            raise PositionLost(f"{where}: the shadow offset was not written by us: {exc}") from exc

    def _without_offset(self, one: Claimed, entries: Mapping[str, bytes], end: int) -> Resolved:
        if start_of(entries, one.remote) is not None:
            return Resolved(owned=self._rebuild(one, entries, end))
        if end > 0:
            raise PositionLost(
                f"{self._config.flow} {one.source}: {one.remote} already holds records (it ends "
                f"at {end}) and has no shadow offset. Delete it, or exclude its source topic."
            )
        first = start_of(entries, TopicPartition(one.remote.topic, 0))
        grown = first is not None and one.source.partition >= first.partitions
        wanted = start_of_topic(self._config.start_position, one.source.topic)
        start = FROM_THE_START if grown else wanted
        next_offset = self._metadata.start_offset(one.source, start)
        owned = OwnedPartition(
            source=one.source,
            remote=one.remote,
            topic_id=one.topic_id,
            position=Position(next_offset),
            tail=MapTail.empty(next_offset, downstream=0),
            sequence=0,
            committed=None,
            committed_at=0.0,
            partitions=one.partitions,
        )
        record = StartRecord(
            topic_id=one.topic_id, next_offset=next_offset, partitions=one.partitions
        )
        return Resolved(owned=owned, start=record)

    def _rebuild(self, one: Claimed, entries: Mapping[str, bytes], end: int) -> OwnedPartition:
        """Rebuild it from the spilled map, if nothing was committed after the last spill."""
        segments = segments_of(entries, one.remote)
        last = segments[-1] if segments else None
        if last is None or last.downstream_end is None or last.downstream_end + 1 != end:
            raise PositionLost(
                f"{self._config.flow} {one.source}: mirrored before, but the shadow offset is "
                f"gone and the offset map does not reach the end of {one.remote} ({end}). "
                f"docs/operations.md says what can be done."
            )
        return OwnedPartition(
            source=one.source,
            remote=one.remote,
            topic_id=one.topic_id,
            position=Position(last.upstream_end),
            tail=MapTail.empty(
                last.upstream_end, segment=last.number + 1, downstream=last.downstream_end
            ),
            sequence=0,
            committed=None,
            committed_at=0.0,
        )
