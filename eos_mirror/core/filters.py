"""Decides which topics of the source a flow replicates."""

import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Protocol

from eos_mirror.core.flow import INTERNAL_PREFIX
from eos_mirror.core.name_patterns import NamePatterns, Names, is_plain
from eos_mirror.core.policy import (
    ReplicationPolicy,
    is_heartbeats_topic,
    is_internal_topic,
)
from eos_mirror.errors import ConfigError

MOST_NEAR = 3
"""Most topics that are suggested for a pattern."""

MOST_SEARCHED = 5
"""For so many patterns. A search among 5,000 topics takes 150 ms."""


class NameFilter(Protocol):
    """Decides about names: of topics, of groups, of entries of a topic's configuration."""

    def matches(self, name: str) -> bool:
        """Return True if the filter accepts the name."""


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """
    Include and exclude lists of regular expressions; a name must match as a whole.

    An empty include list matches nothing. Exclude beats include.

    Raises:
        ConfigError: It lists every pattern that Python's `re` cannot compile.

    Source: Kafka's DefaultTopicFilter, `topics` and `topics.exclude`.
    """

    include: Sequence[str]
    exclude: Sequence[str]
    _included: NamePatterns = field(init=False, repr=False, compare=False)
    _excluded: NamePatterns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        faults = [fault for pattern in (*self.include, *self.exclude) for fault in _faults(pattern)]
        if faults:
            raise ConfigError(*faults)
        object.__setattr__(self, "_included", NamePatterns(self.include))
        object.__setattr__(self, "_excluded", NamePatterns(self.exclude))

    def matches(self, name: str) -> bool:
        """Return True if the lists accept the topic."""
        return self._included.matches(name) and not self._excluded.matches(name)


def unmatched(include: Sequence[str], topics: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """
    Yield patterns that match no topic at all, each with the topics that were probably meant.

    These are topics that differ only in case; if none does, topics whose names resemble the
    pattern without its special characters. They are searched for the first patterns only.
    """
    names, searched = Names(topics), 0
    for pattern in include:
        if names.has(pattern):
            continue
        searched += 1
        if searched > MOST_SEARCHED:
            yield pattern, []
            continue
        alike = [topic for topic in topics if re.fullmatch(pattern, topic, re.IGNORECASE)]
        plain = re.sub(r"[^\w-]+", "", pattern)
        yield pattern, sorted(alike)[:MOST_NEAR] or get_close_matches(plain, topics, MOST_NEAR)


def is_selected(
    topic: str,
    topic_filter: NameFilter,
    *,
    policy: ReplicationPolicy,
    heartbeats_replicated: bool = True,
) -> bool:
    """
    Decide whether a topic of the source is asked for: by the filter, or as heartbeats.

    Args:
        topic: Its name on the source.
        topic_filter: The configured filter.
        policy: Recognises internal topics, which are never selected, and heartbeats.
        heartbeats_replicated: `heartbeats.replication.enabled`: heartbeats pass the filter.

    Source: MirrorSourceConnector of Kafka 4.3 (KIP-1074, KIP-1089); only the exclusion of
        eos_mirror's own topics is ours.
    """
    wanted = topic_filter.matches(topic) or (
        heartbeats_replicated and is_heartbeats_topic(policy, topic)
    )
    return wanted and not topic.startswith(INTERNAL_PREFIX) and not is_internal_topic(policy, topic)


def came_from(topic: str, alias: str, policy: ReplicationPolicy) -> bool:
    """
    Return True if the name of a topic says that it came through this cluster.

    Mirrored into that cluster, it would close a circle. A name that says that it came from the
    source closes none: the copy of its copy is recognised.

    Source: MirrorSourceConnector of Kafka 4.3. Kafka 4.4 also leaves out what came from the source
        (KAFKA-9914).
    """
    upstream: str | None = topic
    while upstream is not None:
        topic = upstream
        if policy.topic_source(topic) == alias:
            return True
        upstream = policy.upstream_topic(topic)
        if upstream == topic:
            return False
    return False


def _faults(pattern: str) -> list[str]:
    """Return why the pattern cannot be compiled; nothing if it can."""
    if is_plain(pattern):
        return []
    try:
        with warnings.catch_warnings():
            # [a-z&&[^x]] is a set operation in Java, but not in Python.
            warnings.simplefilter("error", FutureWarning)
            re.compile(pattern)
    except (re.error, FutureWarning) as exc:
        return [f"topic pattern {pattern!r}: {exc}; write it without Java's extensions"]
    return []
