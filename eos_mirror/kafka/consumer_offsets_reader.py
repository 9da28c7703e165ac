"""Who commits on a cluster, as it happens: a bell, for asking the coordinators at once."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_END, Consumer
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.internal_records import committed_by
from eos_mirror.kafka.errors import DENIED, translated
from eos_mirror.kafka.reconnecting import StallDetector, let_go

COMMITS = "__consumer_offsets"
AT_ONCE = 10_000
ANSWER_S = 10.0
BUFFER_KB = 4096


class GroupCommit(NamedTuple):
    """A group has committed, or will have if its transaction commits, an offset of a topic."""

    group: str
    topic: str


class GroupCommits:
    """
    Reads what the coordinators of a cluster write, from now on. One thread uses it.

    What is heard is no fact, and may be missed: a transaction may be open, and nothing from before
    the first call is heard. Facts are asked of the coordinator.

    Attributes:
        unavailable_reason: Why nothing is heard, if so; it stays that way.
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
        self._silence: StallDetector | None = None
        self.unavailable_reason = ""

    def heard(self) -> set[GroupCommit]:
        """
        Since the last call; nothing while the cluster does not answer. Waits for nothing, but the
        first time for the cluster.

        Raises:
            RestartTask: By class, the first time.
        """
        if self.unavailable_reason:
            return set()
        if self._consumer is None:
            self._listen()
        if self._consumer is None or self._silence is None:
            return set()
        keys = set()
        messages = self._consumer.consume(AT_ONCE, 0)
        now = time.monotonic()
        if messages:
            self._silence.broken(now)
        elif self._silence.is_stalled(now, COMMITS):
            lost: list[object] = [self._consumer, self._silence]
            self._consumer = self._silence = None
            let_go(lost)
        for message in messages:
            error = message.error()
            if error is None:
                keys.add(message.key())
            elif error.code() in DENIED:
                self._give_up(error.str())
        return {GroupCommit(*found) for key in keys if (found := committed_by(key)) is not None}

    def _listen(self) -> None:
        """From the end of every partition, once the topic exists: the first commit makes it."""
        consumer = Consumer(self._config)
        with translated(f"look at {COMMITS}", source=True):
            found = consumer.list_topics(COMMITS, ANSWER_S).topics[COMMITS]
            if found.error is not None:
                if found.error.code() in DENIED:
                    self._give_up(found.error.str())
                consumer.close()
                return
            consumer.assign([ClientPartition(COMMITS, p, OFFSET_END) for p in found.partitions])
        self._consumer, self._silence = consumer, StallDetector(consumer, self._config)

    def _give_up(self, reason: str) -> None:
        self.unavailable_reason = reason
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
