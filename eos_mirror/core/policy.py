"""
Replication policies: the name of a topic on the target, and what a name shows.

The rules are those of Kafka's `connect-mirror-client` 4.x, so that its `MirrorClient` and
`RemoteClusterUtils` recognise what we create.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from eos_mirror.errors import ConfigError

HEARTBEATS_TOPIC: Final = "heartbeats"
DEFAULT_SEPARATOR: Final = "."
_GROUP: Final = re.compile(r"\$(\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopics:
    """
    Names of MirrorMaker 2's own topics.

    Attributes:
        separator: Text between the parts of a name.

    Source: KIP-382, KIP-949, KIP-1074; Kafka's DefaultReplicationPolicy.
    """

    separator: str = DEFAULT_SEPARATOR

    @property
    def suffix(self) -> str:
        """Suffix of all these names."""
        return f"{self.separator}internal"

    def checkpoints(self, alias: str) -> str:
        """Return the topic on the target with translated offsets of groups of cluster `alias`."""
        return f"{alias}{self.separator}checkpoints{self.suffix}"

    def offset_syncs(self, alias: str) -> str:
        """Return the topic with upstream and downstream offsets; `alias` is the other cluster's."""
        return f"mm2-offset-syncs{self.separator}{alias}{self.suffix}"

    def is_checkpoints(self, topic: str) -> bool:
        """Return True for the checkpoints topic of any cluster."""
        return topic.endswith(self.checkpoints(""))

    def is_internal(self, topic: str) -> bool:
        """Return True for any of these topics."""
        return (topic.startswith("mm2") and topic.endswith(self.suffix)) or self.is_checkpoints(
            topic
        )


class ReplicationPolicy(Protocol):
    """
    How topics are named across clusters. Every flow, client and tool uses the same one.

    Source: KIP-382, KIP-690; Kafka's ReplicationPolicy.
    """

    @property
    def internal_topics(self) -> InternalTopics:
        """Names of MirrorMaker 2's own topics."""

    def format_remote_topic(self, alias: str, topic: str) -> str:
        """Return the name on the target of `topic` of cluster `alias`."""

    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster that `topic` came from; None for a local topic."""

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name of `topic` on the cluster it came from; None for a local topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultReplicationPolicy:
    """
    Remote topics are called `alias.topic`.

    An alias that contains the separator cannot be distinguished from the topic after it.

    Source: Kafka's DefaultReplicationPolicy.
    """

    separator: str = DEFAULT_SEPARATOR
    internal_topics: InternalTopics = InternalTopics()

    def format_remote_topic(self, alias: str, topic: str) -> str:
        """Return the topic with the alias before it."""
        return f"{alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """
        Return the part before the first separator, which may be empty.

        None if only separators come after it: Java's split drops empty parts at the end. Without a
        separator, as some configurations of the identity policy have it, Java splits between all
        characters.
        """
        if not self.separator:
            return topic[:1] or None
        alias, _, rest = topic.partition(self.separator)
        return alias if rest.replace(self.separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        """Return the part after the first separator."""
        alias = self.topic_source(topic)
        return None if alias is None else topic[len(alias) + len(self.separator) :]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityReplicationPolicy:
    """
    Remote topics keep their names, except heartbeats. Names say nothing about cycles.

    Attributes:
        source_alias: Where every topic is assumed to come from; None if not configured.
        prefixing: The policy for heartbeats.

    Source: Kafka's IdentityReplicationPolicy (KAFKA-9726).
    """

    source_alias: str | None = None
    prefixing: DefaultReplicationPolicy = DefaultReplicationPolicy()

    @property
    def internal_topics(self) -> InternalTopics:
        """Names of MirrorMaker 2's own topics."""
        return self.prefixing.internal_topics

    def format_remote_topic(self, alias: str, topic: str) -> str:
        """Return the topic itself; heartbeats get the alias before them."""
        if _looks_like_heartbeats(topic):
            return self.prefixing.format_remote_topic(alias, topic)
        return topic

    def topic_source(self, topic: str) -> str | None:
        """Return the configured source; for heartbeats, the alias in the name."""
        if _looks_like_heartbeats(topic):
            return self.prefixing.topic_source(topic)
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Return the topic itself; heartbeats lose the alias before them."""
        if _looks_like_heartbeats(topic):
            return self.prefixing.upstream_topic(topic)
        return topic


class Rename(NamedTuple):
    """
    A rule that gives topics other names.

    Attributes:
        pattern: Matches whole names.
        remote: Name on the target; `$1` is the first group of the pattern.
    """

    pattern: "re.Pattern[str]"
    remote: str

    def __str__(self) -> str:
        return f"{self.pattern.pattern}:{self.remote}"

    def __call__(self, topic: str) -> str | None:
        """Return the other name; None if the pattern does not match."""
        match = self.pattern.fullmatch(topic)
        if match is None:
            return None
        return _GROUP.sub(lambda number: match[int(number[1])] or "", self.remote)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamingPolicy:
    """
    Gives some topics names of their own, and all others those of another policy.

    Such a name does not show where its topic came from.

    Attributes:
        renames: The first one that matches counts; never for heartbeats.
        others: The policy for everything else.
    """

    renames: Sequence[Rename]
    others: ReplicationPolicy

    @property
    def internal_topics(self) -> InternalTopics:
        """Names of MirrorMaker 2's own topics."""
        return self.others.internal_topics

    def format_remote_topic(self, alias: str, topic: str) -> str:
        """Return the topic's own name, or that of the other policy."""
        if not is_heartbeats_topic(self.others, topic):
            for rename in self.renames:
                if (remote := rename(topic)) is not None:
                    return remote
        return self.others.format_remote_topic(alias, topic)

    def topic_source(self, topic: str) -> str | None:
        """Return the answer of the other policy."""
        return self.others.topic_source(topic)

    def upstream_topic(self, topic: str) -> str | None:
        """Return the answer of the other policy."""
        return self.others.upstream_topic(topic)


def replication_policy(
    name: str,
    *,
    separator: str = DEFAULT_SEPARATOR,
    internal_separator_enabled: bool = True,
    source_alias: str | None = None,
) -> ReplicationPolicy:
    """
    Return the policy that a configuration asks for.

    Args:
        name: `replication.policy.class`: a Java class name, with or without its package.
        separator: `replication.policy.separator`.
        internal_separator_enabled: `replication.policy.internal.topic.separator.enabled`; False
            keeps the dots in the names of internal topics.
        source_alias: `source.cluster.alias`; used by the identity policy.

    Raises:
        ConfigError: Unknown class, or an empty separator of the default policy.
    """
    internal = InternalTopics(
        separator=separator if internal_separator_enabled else DEFAULT_SEPARATOR
    )
    default = DefaultReplicationPolicy(separator=separator, internal_topics=internal)
    match name.rpartition(".")[2]:
        case "DefaultReplicationPolicy":
            if not separator:
                raise ConfigError("replication.policy.separator must not be empty")
            return default
        case "IdentityReplicationPolicy":
            return IdentityReplicationPolicy(source_alias=source_alias, prefixing=default)
        case _:
            raise ConfigError(
                f"replication.policy.class={name} is unknown: "
                "use DefaultReplicationPolicy or IdentityReplicationPolicy"
            )


def original_topic(policy: ReplicationPolicy, topic: str) -> str:
    """Return the name of the topic on the cluster where its records were first written."""
    upstream = policy.upstream_topic(topic)
    while upstream is not None and upstream != topic:
        topic, upstream = upstream, policy.upstream_topic(upstream)
    return topic


def is_heartbeats_topic(policy: ReplicationPolicy, topic: str) -> bool:
    """Return True for `heartbeats` and its copies, however many hops away."""
    return original_topic(policy, topic) == HEARTBEATS_TOPIC


def is_internal_topic(policy: ReplicationPolicy, topic: str) -> bool:
    """
    Return True for topics that serve Kafka or MirrorMaker 2.

    Since Kafka 4.0 a topic of an application may end with `.internal` (KIP-1074).
    """
    return topic.startswith(("__", ".")) or policy.internal_topics.is_internal(topic)


def hops_to(policy: ReplicationPolicy, topic: str, alias: str) -> int | None:
    """
    Return how many hops away `alias` is on the path of `topic`; None if it is not on that path.

    Source: Kafka's MirrorClient.countHopsForTopic.
    """
    for hops, source in enumerate(sources_of(policy, topic), 1):
        if source == alias:
            return hops
    return None


def sources_of(policy: ReplicationPolicy, topic: str) -> list[str]:
    """Return the clusters that a topic came from, nearest first; a loop is traversed once."""
    sources: list[str] = []
    at: str | None = topic
    while at is not None:
        source = policy.topic_source(at)
        if source is None or source in sources:
            break
        sources.append(source)
        at = policy.upstream_topic(at)
    return sources


def _looks_like_heartbeats(topic: str) -> bool:
    return topic.endswith(HEARTBEATS_TOPIC)
