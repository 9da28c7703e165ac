"""
For applications: which clusters a cluster is mirrored from, and where a group goes on here.

The names and the answers are those of Kafka's `MirrorClient` and `RemoteClusterUtils`. Nothing of
the mirror is loaded: this module needs confluent-kafka and no more.

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
from eos_mirror.kafka.internal_topics import read_internal, topic_names

__all__ = ["MirrorClient", "OffsetAndMetadata", "RemoteClusterUtils"]

UNREACHABLE: Final = -1
POLICY: Final = "replication.policy."
ALIAS: Final = "source.cluster.alias"


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """Where a group goes on, and what it noted there."""

    offset: int
    metadata: str = ""


class MirrorClient:
    """
    Asks one cluster, usually the target of a flow. Every call connects anew.

    Attributes:
        skipped: Records of checkpoints topics that could not be read so far; other tools may
            write there.
    """

    def __init__(
        self, config: Mapping[str, Any], *, policy: ReplicationPolicy | None = None
    ) -> None:
        """
        Args:
            config: Connection and security in librdkafka's names, and `replication.policy.*`
                as the mirror has it; with the identity policy `source.cluster.alias`, too.
            policy: Instead of `replication.policy.*`.

        Raises:
            ConfigError: The policy is unknown.
        """
        mine = {key: str(config[key]) for key in config if key.startswith((POLICY, ALIAS))}
        self._config = {key: value for key, value in config.items() if key not in mine}
        self._policy = policy or _policy(mine)
        self.skipped = 0

    def __enter__(self) -> Self:
        """Nothing is held open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    @property
    def replication_policy(self) -> ReplicationPolicy:
        """How topics are named."""
        return self._policy

    def replication_hops(self, upstream_alias: str) -> int:
        """How many clusters away `upstream_alias` is; -1 if no heartbeat came from there."""
        found = (hops_to(self._policy, topic, upstream_alias) for topic in self.heartbeat_topics())
        return min((hops for hops in found if hops is not None), default=UNREACHABLE)

    def heartbeat_topics(self) -> set[str]:
        """The cluster's own, and those that were mirrored to it."""
        return self._topics(lambda topic: is_heartbeats_topic(self._policy, topic))

    def checkpoint_topics(self) -> set[str]:
        """One for each cluster whose groups are translated here."""
        return self._topics(self._policy.internal_topics.is_checkpoints)

    def upstream_clusters(self) -> set[str]:
        """Aliases of every cluster that heartbeats came from or through."""
        return {
            alias for topic in self.heartbeat_topics() for alias in sources_of(self._policy, topic)
        }

    def remote_topics(self, source: str | None = None) -> set[str]:
        """Topics that were mirrored here; only from `source`, if it is given."""

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
        Where a group of cluster `remote_alias` goes on here, by partition of this cluster.

        Args:
            timeout: Checkpoints that are not read by then are missing.

        Raises:
            MirrorError: By class; the cluster does not answer, or a right is missing.
        """
        return {
            checkpoint.partition: OffsetAndMetadata(checkpoint.downstream, checkpoint.metadata)
            for checkpoint in self._checkpoints(remote_alias, within=timeout)
            if checkpoint.group == group
        }

    def remote_groups_offsets(
        self, pattern: "re.Pattern[str]", remote_alias: str, *, timeout: timedelta
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """The same, of every group whose whole name matches."""
        found: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        for one in self._checkpoints(remote_alias, within=timeout):
            if pattern.fullmatch(one.group):
                offset = OffsetAndMetadata(one.downstream, one.metadata)
                found.setdefault(one.group, {})[one.partition] = offset
        return found

    def _checkpoints(self, alias: str, *, within: timedelta) -> Iterator[Checkpoint]:
        topic = self._policy.internal_topics.checkpoints(alias)
        for key, value in read_internal(self._config, topic, within=within):
            try:
                yield Checkpoint.decode(key, value)
            except ValueError:
                self.skipped += 1

    def _topics(self, wanted: Callable[[str], bool]) -> set[str]:
        return {topic for topic in topic_names(self._config) if wanted(topic)}


class RemoteClusterUtils:
    """One question each, with a client for it."""

    @staticmethod
    def replication_hops(config: Mapping[str, Any], upstream_alias: str) -> int:
        """See `MirrorClient`."""
        return MirrorClient(config).replication_hops(upstream_alias)

    @staticmethod
    def heartbeat_topics(config: Mapping[str, Any]) -> set[str]:
        """See `MirrorClient`."""
        return MirrorClient(config).heartbeat_topics()

    @staticmethod
    def checkpoint_topics(config: Mapping[str, Any]) -> set[str]:
        """See `MirrorClient`."""
        return MirrorClient(config).checkpoint_topics()

    @staticmethod
    def upstream_clusters(config: Mapping[str, Any]) -> set[str]:
        """See `MirrorClient`."""
        return MirrorClient(config).upstream_clusters()

    @staticmethod
    def translate_offsets(
        config: Mapping[str, Any], remote_alias: str, group: str, *, timeout: timedelta
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """See `MirrorClient.remote_consumer_offsets`; in the order of Java's arguments."""
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
