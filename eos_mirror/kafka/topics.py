"""Lists, creates and grows topics; reads and alters their configuration."""

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

from eos_mirror.core.side import Side
from eos_mirror.core.topic_configs import Changes, Entry, Origin
from eos_mirror.errors import (
    MirrorError,
    RetriableError,
)
from eos_mirror.kafka.by_topic import Request, by_topic, refusals
from eos_mirror.kafka.client import new_admin
from eos_mirror.kafka.deadline import ANSWER, GRACE_S, PATIENCE, Deadline
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.metadata import MISSING
from eos_mirror.kafka.reconnecting import ReconnectingClient
from eos_mirror.kafka.retry import retrying

T = TypeVar("T")
KNOWN_EVERYWHERE = timedelta(seconds=30)
NOT_THERE_FOR_US = MISSING | {KafkaError.TOPIC_AUTHORIZATION_FAILED}
BROKER_DEFAULT = -1
DESCRIBE_AT_ONCE = 500
RECORDS_AT_ONCE = 5_000
"""A controller refuses a request that creates more than 10,000 metadata records: one for each
topic, partition and configured entry."""

DESCRIBE = Request(
    what="describe the configuration of",
    right="DESCRIBE_CONFIGS on the topic",
    within=ANSWER,
    harmless=MISSING,
)
ALTER = Request(what="alter topic", right="ALTER_CONFIGS on the topic", within=ANSWER)
DELETE = Request(what="delete topic", right="DELETE on the topic", within=PATIENCE)
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
    """A topic to create. Without a replication factor, it gets the brokers' default."""

    name: str
    partitions: int
    replication_factor: int | None
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """
    Configurations by topic. A topic that does not exist is in neither attribute.

    Attributes:
        entries: Config entries by topic. The broker omits sensitive values.
        refused: Error by topic, where the cluster does not describe it to us.
    """

    entries: Mapping[str, Mapping[str, Entry]]
    refused: Mapping[str, MirrorError]

    @property
    def values(self) -> dict[str, dict[str, str]]:
        """Return the values in effect."""
        return {
            topic: {name: entry.value for name, entry in entries.items()}
            for topic, entries in self.entries.items()
        }


class Topics:
    """The topics of one cluster. `connection` has the client, for `translated`."""

    def __init__(self, config: Mapping[str, Any], *, side: Side) -> None:
        """
        Args:
            config: Client settings for connection and security.
            side: Which cluster it is; selects SourceUnavailable or TargetUnavailable.
        """
        self._config = dict(config)
        self._side = side
        self.connection = ReconnectingClient(new_admin, self._config)

    @property
    def admin(self) -> AdminClient:
        """Return the client for one request; the next request may need another client."""
        return self.connection.client

    def list(self, *, within: timedelta = PATIENCE) -> dict[str, int]:
        """Return the partition count of every topic that this principal may describe."""

        def ask(deadline: Deadline) -> dict[str, int]:
            with translated("list topics", side=self._side, of=self.connection):
                found = self.admin.list_topics(timeout=deadline.answer_s).topics
            return {name: len(t.partitions) for name, t in found.items() if t.error is None}

        return retrying(ask, within=within)

    def existing(self, names: Sequence[str]) -> dict[str, int | None]:
        """
        Return the partition count of each topic that exists; None if it may not be described.

        `list` omits topics that may not be described.
        """
        return retrying(partial(self._existing, names)) if names else {}

    def _existing(self, names: Sequence[str], deadline: Deadline) -> dict[str, int | None]:
        answer_s = deadline.answer_s
        with translated("describe topics", side=self._side, of=self.connection):
            answers = self.admin.describe_topics(
                TopicCollection(list(names)), request_timeout=answer_s
            )
            found: dict[str, int | None] = {}
            for name, answer in answers.items():
                try:
                    found[name] = len(answer.result(answer_s + GRACE_S).partitions)
                except KafkaException as exc:
                    if exc.args[0].code() not in NOT_THERE_FOR_US:
                        raise
                    if exc.args[0].code() not in MISSING:
                        found[name] = None
            return found

    def configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """
        Return the effective configuration by topic; topics that do not exist are skipped.

        Raises:
            NotAuthorized: One of them may not be described.
            RestartTask: The cluster did not answer (SourceUnavailable or TargetUnavailable).
        """
        described = self.describe(names)
        for refusal in described.refused.values():
            raise refusal
        return described.values

    def describe(self, names: Sequence[str]) -> Described:
        """Return entries with their origin, or a refusal, for each topic on its own."""
        entries: dict[str, dict[str, Entry]] = {}
        refused: dict[str, MirrorError] = {}
        for start in range(0, len(names), DESCRIBE_AT_ONCE):
            some = names[start : start + DESCRIBE_AT_ONCE]
            found, failed = retrying(partial(self._describe, some))
            entries.update({topic: _entries_of(answer) for topic, answer in found.items()})
            refused.update(failed)
        return Described(entries=entries, refused=refused)

    def _describe(
        self, names: Sequence[str], deadline: Deadline
    ) -> tuple[dict[str, Any], dict[str, MirrorError]]:
        with translated("describe topic configurations", side=self._side, of=self.connection):
            answers = self.admin.describe_configs(
                [ConfigResource(ResourceType.TOPIC, name) for name in names],
                request_timeout=deadline.answer_s,
            )
        return self._by_topic(DESCRIBE, {one.name: answer for one, answer in answers.items()})

    def allowed(self, names: Sequence[str]) -> dict[str, set[AclOperation]]:
        """Return the operations this principal may use, by topic; none if DESCRIBE is denied."""
        return retrying(partial(self._allowed, names))

    def _allowed(self, names: Sequence[str], deadline: Deadline) -> dict[str, set[AclOperation]]:
        answer_s = deadline.answer_s
        with translated("ask for rights on topics", side=self._side, of=self.connection):
            answers = self.admin.describe_topics(
                TopicCollection(list(names)),
                include_authorized_operations=True,
                request_timeout=answer_s,
            )
            found = {}
            for name, answer in answers.items():
                try:
                    operations = answer.result(answer_s + GRACE_S).authorized_operations
                except KafkaException as exc:
                    if exc.args[0].code() not in NOT_THERE_FOR_US:
                        raise
                    operations = None
                found[name] = set(operations or ())
            return found

    def alter(self, wanted: Mapping[str, Changes]) -> dict[str, str]:
        """
        Change config entries; for each topic all of them or none.

        Returns:
            The reason by topic, where the cluster refused the change.

        Raises:
            RestartTask: The cluster did not answer (SourceUnavailable or TargetUnavailable).
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
        Create topics; a topic that already exists is not changed.

        Args:
            validate_only: Only ask the cluster whether it would create them; write nothing.

        Returns:
            The error by topic, where the cluster refused it: `ConfigError` if it does not know an
            entry of the configuration, `NotAuthorized` if CREATE is denied, or `RestartTask`.

        Raises:
            SourceUnavailable, TargetUnavailable: The cluster does not answer.
        """
        refused: dict[str, MirrorError] = {}
        for some in _digestible(specs, lambda spec: 1 + spec.partitions + len(spec.config)):
            ask = partial(
                self.admin.create_topics,
                [
                    NewTopic(
                        spec.name,
                        num_partitions=spec.partitions,
                        replication_factor=spec.replication_factor or BROKER_DEFAULT,
                        config=dict(spec.config),
                    )
                    for spec in some
                ],
                validate_only=validate_only,
                request_timeout=PATIENCE.total_seconds(),
            )
            refused |= refusals(CREATE, ask, side=self._side, of=self.connection)
        return refused

    def ensure(self, spec: TopicSpec) -> None:
        """
        Create a topic if it does not exist, and wait until every broker knows it.

        Raises:
            ConfigError, NotAuthorized, RestartTask: See `create`.
            RetriableError: A broker does not know the topic in time.
        """
        if spec.name not in self.list():
            for refusal in self.create([spec]).values():
                raise refusal
            if self.wait_until_known({spec.name: spec.partitions}):
                raise RetriableError(f"a broker does not know {spec.name} yet")

    def grow(
        self, wanted: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, MirrorError]:
        """Raise partition counts, as `create`; a topic that already has as many is not changed."""
        refused: dict[str, MirrorError] = {}
        for some in _digestible(list(wanted.items()), lambda item: item[1]):
            ask = partial(
                self.admin.create_partitions,
                [NewPartitions(name, count) for name, count in some],
                validate_only=validate_only,
                request_timeout=PATIENCE.total_seconds(),
            )
            refused |= refusals(GROW, ask, side=self._side, of=self.connection)
        return refused

    def _by_topic(
        self, request: Request, answers: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, MirrorError]]:
        return by_topic(request, answers, side=self._side, of=self.connection)

    def delete(self, names: Sequence[str]) -> dict[str, MirrorError]:
        """Delete topics; the brokers forget them some time later. Returns refusals, by topic."""
        answers = self.admin.delete_topics(list(names), request_timeout=PATIENCE.total_seconds())
        return self._by_topic(DELETE, answers)[1]

    def wait_until_known(
        self, wanted: Mapping[str, int], *, within: timedelta = KNOWN_EVERYWHERE
    ) -> set[str]:
        """
        Wait until every broker knows these topics with at least these partition counts.

        If a broker does not know a partition, it answers an offset commit for it with an error
        that fails the transaction. So it is not enough that one broker knows the topic.

        Returns:
            Topics that some broker does not know in time.

        Raises:
            SourceUnavailable, TargetUnavailable: A broker does not answer.
        """
        unknown: set[str] = set()
        for address in retrying(self._brokers):
            left = {name: count for name, count in wanted.items() if name not in unknown}
            unknown |= self._unknown_to(address, left, within)
        return unknown

    def _brokers(self, deadline: Deadline) -> Sequence[str]:
        with translated("list brokers", side=self._side, of=self.connection):
            brokers = self.admin.list_topics(timeout=deadline.answer_s).brokers
        return [f"{broker.host}:{broker.port}" for broker in brokers.values()]

    def _unknown_to(self, address: str, wanted: Mapping[str, int], within: timedelta) -> set[str]:
        """Ask one broker, with a new client, until it knows all topics; return the unknown ones."""
        admin = new_admin({**self._config, "bootstrap.servers": address})
        unknown: set[str] = set()

        def ask(deadline: Deadline) -> None:
            with translated("list topics", side=self._side):
                known = admin.list_topics(timeout=deadline.answer_s).topics
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
    """Yield portions that a controller accepts in one request; an oversized item is alone."""
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
    """Return the entries of a topic, except read-only and secret ones."""
    return {
        name: Entry(value=entry.value, origin=_origin(entry))
        for name, entry in described.items()
        if entry.value is not None and not entry.is_read_only
    }
