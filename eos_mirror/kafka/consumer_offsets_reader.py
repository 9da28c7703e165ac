"""Tails `__consumer_offsets` as a wake-up hint: a group has just committed."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_END, Consumer
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.internal_records import committed_by
from eos_mirror.core.side import Side
from eos_mirror.kafka.client import new_consumer
from eos_mirror.kafka.deadline import ANSWER
from eos_mirror.kafka.errors import DENIED, translated
from eos_mirror.kafka.reconnecting import StallDetector, let_go

COMMITS = "__consumer_offsets"
MAX_MESSAGES = 10_000
"""Of one call."""

BUFFER_KB = 4096


class GroupCommit(NamedTuple):
    """A group has committed, or will have if its transaction commits, an offset of a topic."""

    group: str
    topic: str


class GroupCommits:
    """
    Reads what the coordinators of a cluster write, from the first call on. One thread uses it.

    A hint may be missed, or belong to an open transaction. The coordinator is always asked for the
    committed offset.

    Attributes:
        unavailable_reason: Why there are no hints; it does not change any more. Empty if there are.
    """

    def __init__(self, config: Mapping[str, Any], *, group: str) -> None:
        """
        Args:
            config: Connection and security.
            group: One that this principal may describe. It is never joined.
        """
        self._config = {
            **config,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
            "auto.offset.reset": "latest",
            "queued.max.messages.kbytes": BUFFER_KB,
        }
        self._consumer: Consumer | None = None
        self._stall: StallDetector | None = None
        self.unavailable_reason = ""

    def recent(self) -> set[GroupCommit]:
        """
        Return the commits since the last call; none while the cluster does not answer.

        Only the first call waits for the cluster.

        Raises:
            SourceUnavailable: The cluster did not answer the first call.
        """
        if self.unavailable_reason:
            return set()
        if self._consumer is None:
            self._start()
        if self._consumer is None or self._stall is None:
            return set()
        keys = set()
        messages = self._consumer.consume(MAX_MESSAGES, 0)
        now = time.monotonic()
        if messages:
            self._stall.broken(now)
        elif self._stall.is_stalled(now, COMMITS):
            lost: list[object] = [self._consumer, self._stall]
            self._consumer = self._stall = None
            let_go(lost)
        for message in messages:
            error = message.error()
            if error is None:
                keys.add(message.key())
            elif error.code() in DENIED:
                self._give_up(error.str())
        return {GroupCommit(*found) for key in keys if (found := committed_by(key)) is not None}

    def _start(self) -> None:
        """Start at the end of every partition, once the first commit has created the topic."""
        consumer = new_consumer(self._config)
        with translated(f"read {COMMITS}", side=Side.SOURCE):
            found = consumer.list_topics(COMMITS, ANSWER.total_seconds()).topics[COMMITS]
            if found.error is not None:
                if found.error.code() in DENIED:
                    self._give_up(found.error.str())
                consumer.close()
                return
            consumer.assign([ClientPartition(COMMITS, p, OFFSET_END) for p in found.partitions])
        self._consumer, self._stall = consumer, StallDetector(consumer, self._config)

    def _give_up(self, reason: str) -> None:
        self.unavailable_reason = reason
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
