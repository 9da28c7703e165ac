"""
One fetch session with one broker: only what has changed is sent (KIP-227).

The broker remembers the partitions of a session, with their positions. It answers only about those
that have something to report. Source: Kafka's FetchSessionHandler.
"""

from collections.abc import Mapping
from typing import Any, Final

from eos_mirror.core.records import TopicPartition

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
LAST_EPOCH: Final = 0x7FFFFFFF

Wanted = tuple[bytes, dict[str, int]]
"""A topic id, and the fields of one partition in a request."""


class Session:
    """
    A session. Used by one thread.

    Invariant A: `_sent` is what the broker knows, if it has accepted the last request.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[bytes, int], TopicPartition] = {}
        self.reset()

    def reset(self) -> None:
        """Forget the session: the next request creates a new one."""
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._sent: dict[TopicPartition, Wanted] = {}

    def renew(self) -> None:
        """Create a new session with the next request, which ends this one at the broker."""
        self._epoch = FIRST_EPOCH
        self._sent = {}

    @property
    def is_known(self) -> bool:
        """True if the last request continued a session."""
        return self._epoch != FIRST_EPOCH

    def request(self, wanted: Mapping[TopicPartition, Wanted]) -> dict[str, Any]:
        """Return the fields of a request that concern the session and its partitions."""
        changed = {p: one for p, one in wanted.items() if self._sent.get(p) != one}
        forgotten = {p: one for p, one in self._sent.items() if p not in wanted}
        # a topic of the same name with another id is another topic
        forgotten |= {
            p: self._sent[p] for p, one in changed.items() if self._sent.get(p, one)[0] != one[0]
        }
        self._sent = dict(wanted)
        self._names = {(one[0], p.partition): p for p, one in wanted.items()}
        return self._fields(changed, forgotten)

    def continued(self, moved: Mapping[TopicPartition, Wanted]) -> dict[str, Any]:
        """As `request`, with the same partitions as before: only these may have changed."""
        changed = {p: one for p, one in moved.items() if self._sent.get(p) != one}
        self._sent.update(changed)
        return self._fields(changed, {})

    def _fields(
        self, changed: Mapping[TopicPartition, Wanted], forgotten: Mapping[TopicPartition, Wanted]
    ) -> dict[str, Any]:
        return {
            "session_id": self._id,
            "session_epoch": self._epoch,
            "topics": _by_topic(changed),
            "forgotten_topics_data": [
                {"topic_id": topic, "partitions": [one["partition"] for one in some]}
                for topic, some in _grouped(forgotten).items()
            ],
        }

    def answered(self, session_id: int) -> None:
        """Note that the broker accepted the last request. 0: it keeps no session."""
        if session_id == NO_SESSION:
            self.reset()
            return
        self._id = session_id
        self._epoch = 1 if self._epoch == LAST_EPOCH else self._epoch + 1

    def partition(self, topic_id: bytes, number: int) -> TopicPartition | None:
        """Return the partition that an answer names; None if the last request did not have it."""
        return self._names.get((topic_id, number))


def _grouped(some: Mapping[TopicPartition, Wanted]) -> dict[bytes, list[dict[str, int]]]:
    topics: dict[bytes, list[dict[str, int]]] = {}
    for topic_id, fields in some.values():
        topics.setdefault(topic_id, []).append(fields)
    return topics


def _by_topic(some: Mapping[TopicPartition, Wanted]) -> list[dict[str, Any]]:
    return [{"topic_id": topic, "partitions": fields} for topic, fields in _grouped(some).items()]
