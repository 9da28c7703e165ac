"""Who made the copies that a flow takes over, and where it stored how far it had come."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.metadata import decode_group
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.errors import ConfigError, UnsafeError
from eos_mirror.kafka.groups import CommittedOffsets, hosts_of_members
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.topics import Topics
from eos_mirror.ports import GroupOffset, KnownTopic
from eos_mirror.settings.clients import source_admin
from eos_mirror.settings.model import FlowSettings


class Origin(Protocol):
    """
    Another program that copies, or did.

    Attributes:
        name: For people, such as `MirrorMaker 2`.
        code: For the ledger: what `--from` says.
        mode: The mode of the flow itself that made the copies; None: another program made them.
    """

    name: str
    code: str
    mode: DeliveryMode | None

    def refuse_running(self) -> None:
        """Raise UnsafeError while it may write, as far as that can be seen."""

    def fence(self) -> bool:
        """Fence its transactions; False if it has none, so that its copies must stand still."""

    def stop(self) -> None:
        """Keep it from being started again, if there is a way."""

    def start(self) -> None:
        """Undo `stop`."""

    def positions(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the next offset that it stored, by source partition: it is there, or later."""


class _Unfenced:
    """A program without transactions, which nothing but its owner can stop."""

    mode: DeliveryMode | None = None

    def fence(self) -> bool:
        """See `Origin`."""
        return False

    def stop(self) -> None:
        """See `Origin`."""

    def start(self) -> None:
        """See `Origin`."""


class GroupOrigin(_Unfenced):
    """A consumer group on the source, such as that of MirrorMaker 1."""

    def __init__(self, settings: FlowSettings, group: str, *, topics: Topics) -> None:
        """
        Args:
            topics: Of the source.
        """
        self.name, self.code = f"group {group}", f"group:{group}"
        self._flow, self._group, self._topics = settings.flow, group, topics
        self._offsets = CommittedOffsets(source_admin(settings), group, side=Side.SOURCE)

    def refuse_running(self) -> None:
        """See `Origin`: the group must have no members."""
        hosts = hosts_of_members(self._topics.admin, self._group, side=Side.SOURCE)
        if hosts:
            raise UnsafeError(
                f"{self._flow}: group {self._group} on {self._flow.source} has members "
                f"({', '.join(sorted(hosts))}). Stop them, then adopt."
            )

    def positions(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """See `Origin`."""
        found = retrying(partial(self._offsets.read, sources))
        return {one: offset.position.next_offset for one, offset in found.items()}


class AtLeastOnceOrigin(_Unfenced):
    """The flow itself, which ran at least once: its positions are the offsets of its group."""

    mode: DeliveryMode | None = DeliveryMode.AT_LEAST_ONCE
    code = "mode:alo"

    def __init__(self, clusters: FlowClusters) -> None:
        self.name = f"group {clusters.flow.source_group}"
        self._clusters = clusters

    def refuse_running(self) -> None:
        """See `Origin`; `adopt` waits for the tasks of the flow in any case."""

    def positions(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """
        See `Origin`.

        Raises:
            UnsafeError: An offset belongs to an earlier topic with the same name.
        """
        found = retrying(partial(self._clusters.source_offsets.read, sources))
        topics = self._clusters.source_metadata.topics(sorted({one.topic for one in found}))
        for source, offset in found.items():
            refuse_earlier_topic(source, offset, topics[source.topic])
        return {one: offset.position.next_offset for one, offset in found.items()}


def refuse_earlier_topic(source: TopicPartition, offset: GroupOffset, topic: KnownTopic) -> None:
    """
    Raise UnsafeError if an offset that a task committed is of another topic than this one.

    Args:
        topic: The topic as it is now.
    """
    known = decode_group(offset.metadata)
    if known is not None and known.topic_id != topic.topic_id:
        raise UnsafeError(
            f"{source}: the committed offset {offset.position.next_offset} belongs to an earlier "
            f"topic with this name ({known.topic_id}, now {topic.topic_id}): it was deleted and "
            f"created again. Delete the offset and the remote topic, or exclude it."
        )


class FileOrigin(_Unfenced):
    """Any program: its owner wrote its positions into a JSON file."""

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: `{"orders": {"0": 5210}}`: next source offset by topic and partition.

        Raises:
            ConfigError: The file cannot be read, or is none.
        """
        self.name, self.code = path.name, f"json:{path.name}"
        self._positions = _positions_in(path)

    def refuse_running(self) -> None:
        """See `Origin`: only its owner knows."""

    def positions(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """See `Origin`."""
        return {one: self._positions[one] for one in sources if one in self._positions}


def _positions_in(path: Path) -> dict[TopicPartition, int]:
    try:
        topics: Any = json.loads(path.read_text(encoding="utf-8"))
        return {
            TopicPartition(topic, int(number)): _offset(next_offset)
            for topic, offsets in topics.items()
            for number, next_offset in offsets.items()
        }
    except OSError as exc:
        raise ConfigError(f"{path}: {exc.strerror}") from exc
    except (AttributeError, TypeError, ValueError) as exc:
        raise ConfigError(
            f'{path}: not an object such as {{"orders": {{"0": 5210}}}}, the next offset by topic '
            f"and partition"
        ) from exc


def _offset(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"not an offset: {value!r}")
    return value
