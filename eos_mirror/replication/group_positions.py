"""At least once: a granted partition resumes at its committed position."""

from collections.abc import Mapping, Sequence

from eos_mirror.core.messages import MirrorConfig
from eos_mirror.core.metadata import decode_group
from eos_mirror.core.offset_map import MapTail
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.start_positions import FROM_THE_START, start_of_topic
from eos_mirror.errors import PartitionStopped, PositionLost, SourceDataLost
from eos_mirror.ports import UNSTABLE, GroupOffset, PartitionEnd, Unstable
from eos_mirror.replication.adapters import Adapters
from eos_mirror.replication.partition import Claimed, OwnedPartition, Resolved


class GroupPositions:
    """Implements `PositionReader`."""

    def __init__(self, config: MirrorConfig, adapters: Adapters) -> None:
        self._config = config
        self._target = adapters.target
        self._metadata = adapters.metadata
        self._lane = adapters.lane

    def resolve(
        self, claimed: Sequence[Claimed]
    ) -> Mapping[TopicPartition, Resolved | Unstable | PartitionStopped]:
        """See `PositionReader`."""
        firsts = {TopicPartition(one.source.topic, 0) for one in claimed}
        offsets = self._lane.offsets.committed(sorted(firsts | {one.source for one in claimed}))
        new = [one.remote for one in claimed if offsets[one.source] is None]
        ends = self._target.ends(new) if new else {}
        answers: dict[TopicPartition, Resolved | Unstable | PartitionStopped] = {}
        for one in claimed:
            offset = offsets[one.source]
            try:
                if offset is not None:
                    answers[one.source] = Resolved(owned=self._resume(one, offset))
                else:
                    first = offsets[TopicPartition(one.source.topic, 0)]
                    answers[one.source] = self._begin(one, first, ends[one.remote])
            except PartitionStopped as exc:
                answers[one.source] = exc
        lost = [one.source for one in claimed if isinstance(answers[one.source], PositionLost)]
        if lost:  # unless their next owner began with them after the offsets were read
            now = self._lane.offsets.committed(lost)
            answers.update({source: UNSTABLE for source in lost if now[source] is not None})
        return answers

    def _resume(self, one: Claimed, offset: GroupOffset) -> OwnedPartition:
        """Resume at the committed offset; one committed by an operator's tool is used as it is."""
        metadata = decode_group(offset.metadata)
        if metadata is not None and metadata.topic_id != one.topic_id:
            raise SourceDataLost(
                f"{self._config.flow} {one.source} next_offset={offset.position.next_offset}: the "
                f"source topic was deleted and created again (id {metadata.topic_id} is now "
                f"{one.topic_id})"
            )
        partitions = metadata.partitions if metadata is not None else one.partitions
        return _owned(one, offset.position, partitions=partitions, is_committed=True)

    def _begin(self, one: Claimed, first: GroupOffset | None, end: PartitionEnd) -> Resolved:
        """
        Begin a partition without an offset: it is new, or the source lost its offset.

        Raises:
            PositionLost: The remote partition holds records, so the partition is not new.
                Beginning again would repeat or skip some.
        """
        if end.written > 0 and not self._config.provenance:
            raise PositionLost(
                f"{self._config.flow} {one.source}: {one.remote} holds records (it ends at "
                f"{end.written}), but {self._lane.offsets.absent}"
            )
        known = decode_group(first.metadata) if first is not None else None
        grown = known is not None and one.source.partition >= known.partitions
        wanted = start_of_topic(self._config.start_position, one.source.topic)
        start = FROM_THE_START if grown else wanted
        next_offset = self._metadata.start_offset(one.source, start)
        position = Position(next_offset)
        return Resolved(owned=_owned(one, position, partitions=one.partitions, is_committed=False))


def _owned(
    one: Claimed, position: Position, *, partitions: int, is_committed: bool
) -> OwnedPartition:
    return OwnedPartition(
        source=one.source,
        remote=one.remote,
        topic_id=one.topic_id,
        partitions=partitions,
        position=position,
        tail=MapTail.empty(position.next_offset, downstream=0),
        sequence=0,
        committed=position.next_offset if is_committed else None,
        committed_at=0.0,
    )
