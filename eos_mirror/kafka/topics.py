"""Listing, creating and growing topics; reading their configuration."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from eos_mirror.core.topic_configs import Changes, Entry, Origin
from eos_mirror.errors import (
    MirrorError,
    RetriableError,
)
from eos_mirror.kafka.by_topic import Request, by_topic
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.metadata import ANSWER, MISSING, PATIENCE
from eos_mirror.kafka.reconnecting import ReconnectingClient
from eos_mirror.kafka.retry import retrying

T = TypeVar("T")
KNOWN_EVERYWHERE = timedelta(seconds=30)
NOT_THERE_FOR_US = MISSING | {KafkaError.TOPIC_AUTHORIZATION_FAILED}
DESCRIBE_AT_ONCE = 500
RECORDS_AT_ONCE = 5_000
"""A controller refuses a request that makes more than 10,000 records of metadata: one for each
topic, partition and configured entry."""

DESCRIBE = Request(
    what="describe the configuration of",
    right="DESCRIBE_CONFIGS on the topic",
    within=ANSWER,
    harmless=MISSING,
)
ALTER = Request(what="alter topic", right="ALTER_CONFIGS on the topic", within=ANSWER)
CREATE = Request(
    what="create topic",
    right="CREATE on the topic or the cluster",
    within=PATIENCE,
    harmless={KafkaError.TOPIC_ALREADY_EXISTS},
)
GROW = Request(
    what="grow topic",
    right="ALTER on the topic",
    within=PATIENCE,
    harmless={KafkaError.INVALID_PARTITIONS},
)

ORIGINS = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG: Origin.TOPIC,
    ConfigSource.STATIC_BROKER_CONFIG: Origin.FILE,
    ConfigSource.DEFAULT_CONFIG: Origin.DEFAULT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic to create."""

    name: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """
    Configurations by topic. A topic that does not exist is nowhere in it.

    Attributes:
        entries: Sensitive values are left out by the broker.
        refused: Why not, of the topics that the cluster does not describe to us.
    """

    entries: Mapping[str, Mapping[str, Entry]]
    refused: Mapping[str, MirrorError]

    @property
    def values(self) -> dict[str, dict[str, str]]:
        """The values in effect."""
        return {
            topic: {name: entry.value for name, entry in entries.items()}
            for topic, entries in self.entries.items()
        }


class Topics:
    """The topics of one cluster."""

    def __init__(self, config: Mapping[str, Any], *, source: bool) -> None:
        """
        Args:
            config: Connection and security.
            source: Whose fault it is when the cluster does not answer.
        """
        self._config = dict(config)
        self._source = source
        self._client = ReconnectingClient(AdminClient, self._config)

    @property
    def admin(self) -> AdminClient:
        """For one question: another one may have another client."""
        return self._client.client

    def list(self, *, within: timedelta = PATIENCE) -> dict[str, int]:
        """Partition count of every topic that this principal may describe."""

        def ask() -> dict[str, int]:
            with translated("list topics", source=self._source, of=self._client):
                found = self.admin.list_topics(timeout=min(ANSWER, within).total_seconds()).topics
            return {name: len(t.partitions) for name, t in found.items() if t.error is None}

        return retrying(ask, within=within)

    def existing(self, names: Sequence[str]) -> dict[str, int | None]:
        """
        Partition counts of those of these topics that exist; None if one may not be described.

        `list` does not name topics whose description is denied.
        """
        return retrying(partial(self._existing, names), within=PATIENCE) if names else {}

    def _existing(self, names: Sequence[str]) -> dict[str, int | None]:
        with translated("describe topics", source=self._source, of=self._client):
            answers = self.admin.describe_topics(
                TopicCollection(list(names)), request_timeout=ANSWER.total_seconds()
            )
            found: dict[str, int | None] = {}
            for name, answer in answers.items():
                try:
                    found[name] = len(answer.result(ANSWER.total_seconds() + 1).partitions)
                except KafkaException as exc:
                    if exc.args[0].code() not in NOT_THERE_FOR_US:
                        raise
                    if exc.args[0].code() not in MISSING:
                        found[name] = None
            return found

    def configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """
        Effective configuration by topic; topics that do not exist are left out.

        Raises:
            NotAuthorized: One of them may not be described.
            RestartTask: By class.
        """
        described = self.describe(names)
        for refusal in described.refused.values():
            raise refusal
        return described.values

    def describe(self, names: Sequence[str]) -> Described:
        """The same for each topic by itself, with where each entry comes from."""
        entries: dict[str, dict[str, Entry]] = {}
        refused: dict[str, MirrorError] = {}
        for start in range(0, len(names), DESCRIBE_AT_ONCE):
            some = names[start : start + DESCRIBE_AT_ONCE]
            found, failed = retrying(partial(self._describe, some), within=PATIENCE)
            entries.update({topic: _entries_of(answer) for topic, answer in found.items()})
            refused.update(failed)
        return Described(entries=entries, refused=refused)

    def _describe(self, names: Sequence[str]) -> tuple[dict[str, Any], dict[str, MirrorError]]:
        with translated("describe topic configurations", source=self._source, of=self._client):
            answers = self.admin.describe_configs(
                [ConfigResource(ResourceType.TOPIC, name) for name in names],
                request_timeout=ANSWER.total_seconds(),
            )
        return self._by_topic(DESCRIBE, {one.name: answer for one, answer in answers.items()})

    def allowed(self, names: Sequence[str]) -> dict[str, set[AclOperation]]:
        """What this principal may do, by topic: nothing with one that it may not even describe."""
        return retrying(partial(self._allowed, names), within=PATIENCE)

    def _allowed(self, names: Sequence[str]) -> dict[str, set[AclOperation]]:
        with translated("ask for rights on topics", source=self._source, of=self._client):
            answers = self.admin.describe_topics(
                TopicCollection(list(names)),
                include_authorized_operations=True,
                request_timeout=ANSWER.total_seconds(),
            )
            found = {}
            for name, answer in answers.items():
                try:
                    operations = answer.result(ANSWER.total_seconds() + 1).authorized_operations
                except KafkaException as exc:
                    if exc.args[0].code() not in NOT_THERE_FOR_US:
                        raise
                    operations = None
                found[name] = set(operations or ())
            return found

    def alter(self, wanted: Mapping[str, Changes]) -> dict[str, str]:
        """
        Change entries; of each topic all or none.

        Returns:
            Why not, by topic, where the cluster refused it.

        Raises:
            RestartTask: By class; the cluster does not answer.
        """
        names = list(wanted)
        refused: dict[str, MirrorError] = {}
        for start in range(0, len(names), DESCRIBE_AT_ONCE):
            some = names[start : start + DESCRIBE_AT_ONCE]
            answers = self.admin.incremental_alter_configs(
                [_altered(name, wanted[name]) for name in some],
                request_timeout=ANSWER.total_seconds(),
            )
            futures = {resource.name: answer for resource, answer in answers.items()}
            refused.update(self._by_topic(ALTER, futures)[1])
        return {topic: str(refusal) for topic, refusal in refused.items()}

    def create(
        self, specs: Sequence[TopicSpec], *, validate_only: bool = False
    ) -> dict[str, MirrorError]:
        """
        Create topics; one that exists already is left as it is.

        Args:
            validate_only: Ask the cluster whether it would, and write nothing.

        Returns:
            Why not, by topic, where the cluster refused it: `ConfigError` if it does not know an
            entry of the configuration, `NotAuthorized` if CREATE is denied, or `RestartTask`.

        Raises:
            SourceUnavailable, TargetUnavailable: The cluster does not answer.
        """
        refused: dict[str, MirrorError] = {}
        for some in _digestible(specs, lambda spec: 1 + spec.partitions + len(spec.config)):
            answers = self.admin.create_topics(
                [
                    NewTopic(
                        spec.name,
                        num_partitions=spec.partitions,
                        replication_factor=spec.replication_factor,
                        config=dict(spec.config),
                    )
                    for spec in some
                ],
                validate_only=validate_only,
                request_timeout=PATIENCE.total_seconds(),
            )
            refused.update(self._by_topic(CREATE, answers)[1])
        return refused

    def ensure(self, spec: TopicSpec) -> None:
        """
        Create a topic if there is none, and wait until every broker knows it.

        Raises:
            ConfigError, NotAuthorized, RestartTask: See `create`.
            RetriableError: A broker does not know it in time.
        """
        if spec.name not in self.list():
            for refusal in self.create([spec]).values():
                raise refusal
            if self.wait_until_known({spec.name: spec.partitions}):
                raise RetriableError(f"a broker does not know {spec.name} yet")

    def grow(
        self, wanted: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, MirrorError]:
        """Raise partition counts; else as `create`, a topic that has as many already included."""
        refused: dict[str, MirrorError] = {}
        for some in _digestible(list(wanted.items()), lambda item: item[1]):
            answers = self.admin.create_partitions(
                [NewPartitions(name, count) for name, count in some],
                validate_only=validate_only,
                request_timeout=PATIENCE.total_seconds(),
            )
            refused.update(self._by_topic(GROW, answers)[1])
        return refused

    def _by_topic(
        self, request: Request, answers: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, MirrorError]]:
        return by_topic(request, answers, source=self._source, of=self._client)

    def wait_until_known(
        self, wanted: Mapping[str, int], *, within: timedelta = KNOWN_EVERYWHERE
    ) -> set[str]:
        """
        Wait until every broker knows these topics with at least these partition counts.

        A broker answers an offset commit for a partition that it does not know with an error
        that ends the transaction, so one broker's word is not enough.

        Returns:
            Topics that a broker does not know in time.

        Raises:
            SourceUnavailable, TargetUnavailable: A broker does not answer.
        """
        unknown: set[str] = set()
        for address in retrying(self._brokers, within=PATIENCE):
            left = {name: count for name, count in wanted.items() if name not in unknown}
            unknown |= self._unknown_to(address, left, within)
        return unknown

    def _brokers(self) -> Sequence[str]:
        with translated("list brokers", source=self._source, of=self._client):
            brokers = self.admin.list_topics(timeout=ANSWER.total_seconds()).brokers
        return [f"{broker.host}:{broker.port}" for broker in brokers.values()]

    def _unknown_to(self, address: str, wanted: Mapping[str, int], within: timedelta) -> set[str]:
        """Ask one broker, by a fresh client that is connected to it, until it knows them all."""
        admin = AdminClient({**self._config, "bootstrap.servers": address})
        unknown: set[str] = set()

        def ask() -> None:
            with translated("list topics", source=self._source):
                known = admin.list_topics(timeout=ANSWER.total_seconds()).topics
            unknown.clear()
            unknown.update(
                name
                for name, count in wanted.items()
                if name not in known or len(known[name].partitions) < count
            )
            if unknown:
                raise RetriableError(f"{address} does not know {len(unknown)} topics yet")

        with suppress(RetriableError):
            retrying(ask, within=within)
        return unknown


def _digestible(items: Sequence[T], records: Callable[[T], int]) -> Iterator[list[T]]:
    """Portions that a controller takes in one request; what is too large by itself is alone."""
    some: list[T] = []
    held = 0
    for item in items:
        if some and held + records(item) > RECORDS_AT_ONCE:
            yield some
            some, held = [], 0
        some.append(item)
        held += records(item)
    if some:
        yield some


def _origin(entry: ConfigEntry) -> Origin:
    return ORIGINS.get(ConfigSource(entry.source), Origin.BROKERS)


def _altered(name: str, changes: Changes) -> ConfigResource:
    entries = [
        *(
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in changes.set.items()
        ),
        *(
            ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE)
            for key in changes.delete
        ),
    ]
    return ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)


def _entries_of(described: Mapping[str, ConfigEntry]) -> dict[str, Entry]:
    """What is read-only or secret is no entry."""
    return {
        name: Entry(value=entry.value, origin=_origin(entry))
        for name, entry in described.items()
        if entry.value is not None and not entry.is_read_only
    }
