"""
For applications: finds the upstream clusters of a cluster, and where a group resumes on it.

Names and results are those of Kafka's `MirrorClient` and `RemoteClusterUtils`. The mirror itself
is not loaded: this module needs only confluent-kafka.

    with MirrorClient({"bootstrap.servers": "b:9092"}) as client:
        offsets = client.remote_consumer_offsets("readers", "A", timeout=timedelta(seconds=10))

Source: Kafka's connect-mirror-client 4.3 (KIP-382, KAFKA-20229).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Self

from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.policy import (
    ReplicationPolicy,
    hops_to,
    is_heartbeats_topic,
    is_internal_topic,
    replication_policy,
    sources_of,
)
from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.topic_reader import TopicReader, topic_names

__all__ = ["MirrorClient", "OffsetAndMetadata", "RemoteClusterUtils"]

UNREACHABLE: Final = -1
POLICY: Final = "replication.policy."
ALIAS: Final = "source.cluster.alias"
GROUP: Final = "eos-mirror-client"
"""A consumer must have a group id. It is never joined."""


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """The offset where a group resumes, and the metadata that it committed."""

    offset: int
    metadata: str = ""


class MirrorClient:
    """
    Queries one cluster, usually the target of a flow. Every call opens a new connection.

    Attributes:
        skipped: Number of records of checkpoints topics that could not be decoded so far; other
            tools may write there.
    """

    def __init__(
        self, config: Mapping[str, Any], *, policy: ReplicationPolicy | None = None
    ) -> None:
        """
        Args:
            config: Connection and security in librdkafka's names, and `replication.policy.*`
                as configured for the mirror; the identity policy also needs
                `source.cluster.alias`.
            policy: Used instead of `replication.policy.*`.

        Raises:
            ConfigError: The policy is unknown.
        """
        mine = {key: str(config[key]) for key in config if key.startswith((POLICY, ALIAS))}
        self._config = {key: value for key, value in config.items() if key not in mine}
        self._policy = policy or _policy(mine)
        self.skipped = 0

    def __enter__(self) -> Self:
        """Return itself; no connection is kept open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing; no connection is kept open."""

    @property
    def replication_policy(self) -> ReplicationPolicy:
        """Return the policy that names remote topics."""
        return self._policy

    def replication_hops(self, upstream_alias: str) -> int:
        """Return how many hops away `upstream_alias` is; -1 if no heartbeat came from there."""
        found = (hops_to(self._policy, topic, upstream_alias) for topic in self.heartbeat_topics())
        return min((hops for hops in found if hops is not None), default=UNREACHABLE)

    def heartbeat_topics(self) -> set[str]:
        """Return the cluster's own heartbeats topic, and those that were mirrored to it."""
        return self._topics(lambda topic: is_heartbeats_topic(self._policy, topic))

    def checkpoint_topics(self) -> set[str]:
        """Return the checkpoints topics: one for each cluster whose groups are translated here."""
        return self._topics(self._policy.internal_topics.is_checkpoints)

    def upstream_clusters(self) -> set[str]:
        """Return the alias of every cluster that heartbeats came from or through."""
        return {
            alias for topic in self.heartbeat_topics() for alias in sources_of(self._policy, topic)
        }

    def remote_topics(self, source: str | None = None) -> set[str]:
        """Return the topics that were mirrored here; only those from `source`, if it is given."""

        def is_remote(topic: str) -> bool:
            if is_internal_topic(self._policy, topic):
                return False
            alias = self._policy.topic_source(topic)
            return alias is not None and source in (None, alias)

        return self._topics(is_remote)

    def remote_consumer_offsets(
        self, group: str, remote_alias: str, *, timeout: timedelta
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """
        Return where a group of `remote_alias` resumes here, by partition of this cluster.

        Args:
            timeout: Checkpoints that are not read by then are missing.

        Raises:
            TargetUnavailable: The cluster did not answer.
            NotAuthorized: A right is missing.
        """
        return {
            checkpoint.partition: OffsetAndMetadata(checkpoint.downstream, checkpoint.metadata)
            for checkpoint in self._checkpoints(remote_alias, within=timeout)
            if checkpoint.group == group
        }

    def remote_groups_offsets(
        self, pattern: "re.Pattern[str]", remote_alias: str, *, timeout: timedelta
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """Return the same for every group whose whole name matches."""
        found: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        for one in self._checkpoints(remote_alias, within=timeout):
            if pattern.fullmatch(one.group):
                offset = OffsetAndMetadata(one.downstream, one.metadata)
                found.setdefault(one.group, {})[one.partition] = offset
        return found

    def _checkpoints(self, alias: str, *, within: timedelta) -> Iterator[Checkpoint]:
        topic = self._policy.internal_topics.checkpoints(alias)
        reader = TopicReader(self._config, topic, group=GROUP)
        for key, value in reader.updates(within=within, partial=True):
            try:
                yield Checkpoint.decode(key, value)
            except ValueError:
                self.skipped += 1

    def _topics(self, wanted: Callable[[str], bool]) -> set[str]:
        return {topic for topic in topic_names(self._config, group=GROUP) if wanted(topic)}


class RemoteClusterUtils:
    """The same queries as functions; each call makes its own client."""

    @staticmethod
    def replication_hops(config: Mapping[str, Any], upstream_alias: str) -> int:
        """Ask a new `MirrorClient`."""
        return MirrorClient(config).replication_hops(upstream_alias)

    @staticmethod
    def heartbeat_topics(config: Mapping[str, Any]) -> set[str]:
        """Ask a new `MirrorClient`."""
        return MirrorClient(config).heartbeat_topics()

    @staticmethod
    def checkpoint_topics(config: Mapping[str, Any]) -> set[str]:
        """Ask a new `MirrorClient`."""
        return MirrorClient(config).checkpoint_topics()

    @staticmethod
    def upstream_clusters(config: Mapping[str, Any]) -> set[str]:
        """Ask a new `MirrorClient`."""
        return MirrorClient(config).upstream_clusters()

    @staticmethod
    def translate_offsets(
        config: Mapping[str, Any], remote_alias: str, group: str, *, timeout: timedelta
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Call `MirrorClient.remote_consumer_offsets`, with arguments in Java's order."""
        return MirrorClient(config).remote_consumer_offsets(group, remote_alias, timeout=timeout)


def _policy(settings: Mapping[str, str]) -> ReplicationPolicy:
    return replication_policy(
        settings.get(f"{POLICY}class", "DefaultReplicationPolicy"),
        separator=settings.get(f"{POLICY}separator", "."),
        internal_separator_enabled=(
            settings.get(f"{POLICY}internal.topic.separator.enabled", "true").lower() == "true"
        ),
        source_alias=settings.get(ALIAS),
    )
