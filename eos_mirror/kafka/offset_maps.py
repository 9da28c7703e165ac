"""The offset maps of a flow, read again and again: each time only what is new."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.flow import Flow
from eos_mirror.core.metadata import decode
from eos_mirror.core.offset_map import MapTail, OffsetMap, Segment, decode_segment
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import ForeignWriter, TargetUnavailable
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.groups import CommittedOffsets

WITHIN = timedelta(seconds=60)


class FollowedMaps:
    """
    One thread uses it.

    Attributes:
        unreadable: Why, by partition, where the last `read` found no whole map.
    """

    def __init__(self, flow: Flow, config: Mapping[str, Any]) -> None:
        """
        Args:
            config: Connection to the target and security.
        """
        self._topic = flow.offset_map_topic
        self._config = {
            **config,
            "group.id": flow.shadow_group,  # never joined
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
        self._tails = CommittedOffsets(config, flow.shadow_group, source=False)
        self._segments: dict[TopicPartition, dict[int, Segment]] = {}
        self._next = 0
        self._maps: dict[TopicPartition, tuple[bytes, OffsetMap]] = {}
        self.unreadable: dict[TopicPartition, str] = {}

    def read(self, remotes: Sequence[TopicPartition]) -> dict[TopicPartition, OffsetMap]:
        """
        The maps of these partitions, as of their last commits; of those that were ever mirrored.

        Raises:
            ForeignWriter: A record of the topic is not ours.
            RestartTask: By class.
        """
        # the tails first: what is spilled in between is then known to be newer
        tails = self._tails.read(remotes)
        self._follow()
        found = {}
        self.unreadable = {}
        for remote, shadow in tails.items():
            try:
                found[remote] = self._map(remote, decode(shadow.metadata).tail)
            except ValueError as exc:  # also while a spilled segment waits for its neighbours
                self.unreadable[remote] = str(exc)
        return found

    def _map(self, remote: TopicPartition, tail: bytes) -> OffsetMap:
        known = self._maps.get(remote)
        if known is None or known[0] != tail:
            segments = self._segments.get(remote, {}).values()
            known = self._maps[remote] = (tail, OffsetMap(segments, MapTail.decode(tail)))
        return known[1]

    def _follow(self) -> None:
        for key, value in self._news():
            try:
                topic, partition, number = json.loads(key)
                if isinstance(number, int):
                    segments = self._segments.setdefault(TopicPartition(topic, partition), {})
                    if value is None:
                        segments.pop(number, None)
                    else:
                        segments[number] = decode_segment(value)
            except (TypeError, ValueError) as exc:
                raise ForeignWriter(f"{self._topic}: {exc}") from exc

    def _news(self) -> Iterator[tuple[Any, Any]]:
        deadline = time.monotonic() + WITHIN.total_seconds()
        what = f"read {self._topic}"
        consumer = Consumer(self._config)
        try:
            with translated(what):
                consumer.assign([ClientPartition(self._topic, 0, self._next)])
            while time.monotonic() < deadline:
                for message in consumer.consume(1000, 0.2):
                    error = message.error()
                    if error is None:
                        self._next = cast("int", message.offset()) + 1
                        yield message.key(), message.value()
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 (public name)
                        self._next = cast("int", message.offset())
                        return
                    else:
                        raise as_mirror_error(error, what, source=False)
            raise TargetUnavailable(f"{what}: not to its end in {WITHIN}")
        finally:
            consumer.close()
