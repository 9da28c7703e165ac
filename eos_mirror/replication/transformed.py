"""
Applies the transforms of a flow, and its message handler, to what a task reads.

The engine sees a source that never had the dropped records, as after compaction. Its position
moves past them: with the next record, or as at an end of the partition if none follows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from eos_mirror.core.handlers import MessageHandler, handled
from eos_mirror.core.messages import MirrorConfig
from eos_mirror.core.records import Position, RecordRun, TopicPartition
from eos_mirror.core.transforms import Chain, Transform
from eos_mirror.errors import PartitionStopped, UnreadableBatch
from eos_mirror.ports import Polled, RebalanceListener, Source, TaskContext
from eos_mirror.replication.adapters import Adapters
from eos_mirror.replication.announced_source import AnnouncedSource
from eos_mirror.replication.assigned_source import AssignedSource
from eos_mirror.replication.unreadable import readable_part

RemoteOf = Callable[[str], str]
"""Returns the remote topic of a source topic."""

OpenSource = Callable[[RebalanceListener], Source]


def opener_of(
    adapters: Adapters, config: MirrorConfig, context: TaskContext, remote_of: RemoteOf
) -> OpenSource:
    """
    Return what opens the source of a task, with transforms and classes of the user.

    Raises:
        ConfigError: A class of the user cannot be used.
    """
    user = None if config.listener is None else config.listener.make()

    def open_assigned(listener: RebalanceListener) -> Source:
        source = adapters.lane.open_source(listener)
        if not config.assigned:
            return source
        suspension = None if config.exactly_once else adapters.suspension
        return AssignedSource(source, listener, context, suspension)

    def open_source(listener: RebalanceListener) -> Source:
        if user is None:
            return open_assigned(listener)
        return AnnouncedSource(open_assigned, listener, user)

    if not config.transforms and config.handler is None:
        return open_source
    handler = None if config.handler is None else config.handler.make()
    return lambda listener: TransformedSource(
        open_source(listener), config.transforms, remote_of, handler
    )


class TransformedSource:
    """Implements `ports.Source` over another source. Used by one thread."""

    def __init__(
        self,
        source: Source,
        transforms: Sequence[Transform],
        remote_of: RemoteOf,
        handler: MessageHandler | None = None,
    ) -> None:
        self._source = source
        self._transforms = transforms
        self._remote_of = remote_of
        self._handler = handler
        self._chains: dict[str, Chain] = {}

    def subscribe(self, topics: Sequence[str]) -> None:
        """See `ports.Source`."""
        for topic in topics:  # records of a topic that is left out now may still come
            self._chains[topic] = Chain(self._transforms, remote_topic=self._remote_of(topic))
        self._source.subscribe(topics)

    def poll(self, *, wait: timedelta) -> Polled:
        """See `ports.Source`."""
        polled = self._source.poll(wait=wait)
        if polled.runs:
            self._transform(polled)
        return polled

    def assign(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`."""
        self._source.assign(positions)

    def unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.Source`."""
        self._source.unassign(partitions)

    def commit(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`."""
        self._source.commit(positions)

    def close(self) -> None:
        """See `ports.Source`."""
        self._source.close()

    def _transform(self, polled: Polled) -> None:
        read, polled.runs = polled.runs, []
        ends: dict[TopicPartition, int] = {}
        broken: dict[TopicPartition, PartitionStopped] = {}
        for whole in read:
            if whole.partition in broken:
                continue
            run, fault = self._readable(whole)
            if fault is not None:
                broken[whole.partition] = fault
                polled.ends.pop(whole.partition, None)
            if run is None:
                continue
            left = self._left(run)
            pieces = [] if left is None else self._handled(left)
            polled.runs += pieces
            if not pieces or pieces[-1].next_offset < run.next_offset:
                ends[run.partition] = run.next_offset
            else:
                ends.pop(run.partition, None)
        polled.faults.update(broken)
        for partition, end in ends.items():
            polled.ends[partition] = max(end, polled.ends.get(partition, end))

    def _readable(self, run: RecordRun) -> tuple[RecordRun | None, UnreadableBatch | None]:
        """Return the part of a run that can be decoded, and what ends it."""
        if self._handler is None and self._chains[run.partition.topic].is_empty:
            return run, None
        return readable_part(run)

    def _handled(self, run: RecordRun) -> list[RecordRun]:
        """Return what the message handler makes of a run."""
        return [run] if self._handler is None else list(handled(self._handler, run.decoded()))

    def _left(self, run: RecordRun) -> RecordRun | None:
        """Return what the transforms leave of a run; None if that is nothing."""
        chain = self._chains[run.partition.topic]
        if chain.is_empty:
            return run
        records = run.decoded()
        kept = chain.kept(records.values, records.headers)
        if len(kept.indices) == records.count:
            return replace(records, headers=kept.headers)
        return records.selected(kept.indices, kept.headers) if kept.indices else None
