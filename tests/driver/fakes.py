"""Clusters and configurations for the tests of the driver, without a broker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka.admin import AclOperation

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.filters import TopicFilter
from eos_mirror.core.flow import Flow
from eos_mirror.core.map_records import StartRecord, start_key
from eos_mirror.core.plan import FlowPlan, TopicMapping, plan_flow
from eos_mirror.core.policy import replication_policy
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.topic_configs import Changes, Entry, Origin
from eos_mirror.driver import check, cluster_facts, flow
from eos_mirror.driver.coordinator_check import Coordinators
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.errors import MirrorError, NotAuthorized
from eos_mirror.kafka.connect_offsets import ConnectOffsets
from eos_mirror.kafka.groups import CommittedOffsets, GroupMember
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.topics import Described, Topics, TopicSpec
from eos_mirror.ports import UNSTABLE, GroupOffset, ShadowOffset, Unstable
from eos_mirror.settings.load import load_settings
from eos_mirror.settings.model import FlowSettings, Settings
from tests.driver.fake_metadata import FakeMetadata

FLOW = Flow("A", "B")
ORDERS = TopicPartition("orders", 0)
REMOTE = TopicPartition("A.orders", 0)
TOPIC_ID = "orders".ljust(22, "0")
SOON = timedelta(seconds=10)
ALL_WORK = Coordinators(missing=frozenset(), faults=(), outages=())
Requests = list[tuple[str, tuple[str, ...]]]
"""What was asked, and about which topics."""

CONFIG: Mapping[str, object] = {
    "clusters": "A, B",
    "A.bootstrap.servers": "127.0.0.1:9",
    "B.bootstrap.servers": "127.0.0.1:9",
    "A->B.enabled": "true",
    "runtime": "local",
    "replication.factor": 1,
    "internal.topic.replication.factor": 1,
}


def write_config(folder: Path, keys: Mapping[str, object] | None = None) -> Path:
    """Write a configuration of the flow A->B; these keys replace the usual ones."""
    path = folder / "mm2.properties"
    path.write_text(
        "".join(f"{key} = {value}\n" for key, value in {**CONFIG, **(keys or {})}.items())
    )
    return path


def settings_of(folder: Path, keys: Mapping[str, object] | None = None) -> Settings:
    """Return the settings of such a configuration."""
    return load_settings(write_config(folder, keys), environ={})


def flow_of(folder: Path, keys: Mapping[str, object] | None = None) -> FlowSettings:
    """Return the settings of its only flow."""
    (found,) = settings_of(folder, keys).flows
    return found


def plan_of(source: Mapping[str, int], target: Mapping[str, int] | None = None) -> FlowPlan:
    """Plan to mirror all topics of the source; the arguments are partition counts."""
    mapping = TopicMapping(
        flow=FLOW,
        policy=replication_policy("DefaultReplicationPolicy"),
        topic_filter=TopicFilter([".*"], []),
    )
    return plan_flow(source, target or {}, mapping)


def entry(value: object) -> Entry:
    """Return an entry that is set for its topic."""
    return Entry(value=str(value), origin=Origin.TOPIC)


def group_offset(next_offset: int, metadata: str = "") -> GroupOffset:
    """Return a committed offset."""
    return GroupOffset(position=Position(next_offset), metadata=metadata)


def start_record(topic_id: str = TOPIC_ID) -> StartRecord:
    """Return the start record of a partition."""
    return StartRecord(topic_id=topic_id, next_offset=0, partitions=1)


class Events(list[tuple[str, Mapping[str, Any]]]):
    """Log events, in order."""

    def __call__(self, name: str, fields: Mapping[str, Any]) -> None:
        """Keep an event."""
        self.append((name, fields))

    def of(self, name: str) -> list[Mapping[str, Any]]:
        """Return the fields of every event with this name."""
        return [fields for found, fields in list(self) if found == name]

    @property
    def names(self) -> list[str]:
        """Names of all events."""
        return [name for name, _ in list(self)]


@dataclass(kw_only=True)
class FakeTopics:
    """
    `Topics` of one cluster, in memory.

    Attributes:
        counts: Partition count by topic.
        entries: Configuration by topic; empty for a topic that is missing here.
        hidden: Existing topics that may not be described.
        denied: Missing rights by topic.
        refused: Error by topic, for every request that writes.
        undescribed: Error by topic, for requests for configurations.
        unknown: Topics that some broker does not know in time.
        down: Raised by every request.
        requests: Every request, in order.
        created: What was written by `create`.
    """

    counts: dict[str, int] = field(default_factory=dict)
    entries: dict[str, dict[str, Entry]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    denied: dict[str, set[AclOperation]] = field(default_factory=dict)
    refused: dict[str, MirrorError] = field(default_factory=dict)
    undescribed: dict[str, MirrorError] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    down: MirrorError | None = None
    requests: Requests = field(default_factory=Requests)
    created: dict[str, TopicSpec] = field(default_factory=dict)

    @property
    def admin(self) -> Any:
        """The functions that would use an admin client are replaced; see `FakeClusters.install`."""
        return self

    @property
    def writes(self) -> Requests:
        """Requests that changed something."""
        return [one for one in self.requests if one[0] in {"create", "grow", "alter"} and one[1]]

    def list(self, *, within: timedelta = SOON) -> dict[str, int]:  # noqa: ARG002 (as the real one)
        """See `Topics`."""
        self._ask("list")
        return {name: count for name, count in self.counts.items() if name not in self.hidden}

    def existing(self, names: Sequence[str]) -> dict[str, int | None]:
        """See `Topics`."""
        self._ask("existing", *names)
        return {
            name: None if name in self.hidden else self.counts[name]
            for name in names
            if name in self.counts
        }

    def describe(self, names: Sequence[str]) -> Described:
        """See `Topics`."""
        self._ask("describe", *names)
        return Described(
            entries={
                name: dict(self.entries.get(name, {}))
                for name in names
                if name in self.counts and name not in self.undescribed
            },
            refused={name: self.undescribed[name] for name in names if name in self.undescribed},
        )

    def allowed(self, names: Sequence[str]) -> dict[str, set[AclOperation]]:
        """See `Topics`."""
        self._ask("allowed", *names)
        every = {name: set(AclOperation) if name in self.counts else set() for name in names}
        return {name: allowed - self.denied.get(name, set()) for name, allowed in every.items()}

    def create(
        self, specs: Sequence[TopicSpec], *, validate_only: bool = False
    ) -> dict[str, MirrorError]:
        """See `Topics`."""
        self._ask("validate" if validate_only else "create", *(spec.name for spec in specs))
        for spec in specs:
            if not validate_only and spec.name not in self.refused:
                self.created[spec.name] = spec
                self.counts[spec.name] = spec.partitions
        return self._refusals([spec.name for spec in specs])

    def ensure(self, spec: TopicSpec) -> None:
        """See `Topics`."""
        if spec.name not in self.list():
            for refusal in self.create([spec]).values():
                raise refusal

    def grow(
        self, wanted: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, MirrorError]:
        """See `Topics`."""
        self._ask("validate" if validate_only else "grow", *wanted)
        for name, count in wanted.items():
            if not validate_only and name not in self.refused:
                self.counts[name] = count
        return self._refusals(list(wanted))

    def alter(self, wanted: Mapping[str, Changes]) -> dict[str, str]:
        """See `Topics`."""
        self._ask("alter", *wanted)
        for name, changes in wanted.items():
            if name not in self.refused:
                mine = self.entries.setdefault(name, {})
                mine.update({key: entry(value) for key, value in changes.set.items()})
                for key in changes.delete:
                    del mine[key]
        return {name: str(refusal) for name, refusal in self._refusals(list(wanted)).items()}

    def wait_until_known(self, wanted: Mapping[str, int], *, within: timedelta = SOON) -> set[str]:
        """See `Topics`."""
        self._ask("wait" if within else "check", *wanted)
        return self.unknown & wanted.keys()

    def _ask(self, what: str, *names: str) -> None:
        self.requests.append((what, names))
        if self.down is not None:
            raise self.down

    def _refusals(self, names: Sequence[str]) -> dict[str, MirrorError]:
        return {name: self.refused[name] for name in names if name in self.refused}


@dataclass(kw_only=True)
class FakeTarget:
    """
    `KafkaTarget`.

    Attributes:
        undecided: The offset map has an open transaction after what is in `started`.
        silent: Partitions without a leader.
    """

    shadows: dict[TopicPartition, ShadowOffset | Unstable] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    silent: set[TopicPartition] = field(default_factory=set)
    started: dict[TopicPartition, StartRecord] = field(default_factory=dict)
    undecided: bool = False

    def shadow_offsets(
        self, remotes: Sequence[TopicPartition]
    ) -> dict[TopicPartition, ShadowOffset | Unstable | None]:
        """See `KafkaTarget`."""
        return {one: self.shadows.get(one) for one in remotes}

    def stable_ends(
        self, remotes: Sequence[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], set[TopicPartition]]:
        """See `KafkaTarget`."""
        silent = self.silent & set(remotes)
        return {one: self.ends.get(one, 0) for one in remotes if one not in silent}, silent

    def starts(self) -> dict[TopicPartition, StartRecord] | Unstable:
        """See `KafkaTarget`."""
        return UNSTABLE if self.undecided else dict(self.started)

    def decided_starts(self) -> dict[TopicPartition, StartRecord]:
        """See `KafkaTarget`."""
        return dict(self.started)

    def map_entries(self, topic: str) -> dict[str, bytes] | Unstable:
        """See `KafkaTarget`."""
        if self.undecided:
            return UNSTABLE
        return {start_key(p): one.encode() for p, one in self.started.items() if p.topic == topic}

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """See `KafkaTarget`."""
        return dict.fromkeys(topics, "claims".ljust(22, "0"))


@dataclass(kw_only=True)
class FakeOffsets:
    """`CommittedOffsets` of one group."""

    committed: dict[TopicPartition, GroupOffset] = field(default_factory=dict)
    down: MirrorError | None = None

    def read(
        self, partitions: Sequence[TopicPartition], _deadline: object = None
    ) -> dict[TopicPartition, GroupOffset]:
        """See `CommittedOffsets`."""
        if self.down is not None:
            raise self.down
        return {one: self.committed[one] for one in partitions if one in self.committed}


@dataclass(kw_only=True)
class FakeMode:
    """
    `FlowMode`.

    Attributes:
        rival: The mode that another run notes first.
    """

    noted: DeliveryMode | None = None
    rival: DeliveryMode | None = None

    def read(self) -> DeliveryMode | None:
        """See `FlowMode`."""
        return self.noted

    def note(self, mode: DeliveryMode) -> DeliveryMode:
        """See `FlowMode`."""
        self.noted = self.rival or mode
        return self.noted


@dataclass(kw_only=True)
class FakeClusters:
    """
    Both clusters of a flow, and what only an admin client can ask them.

    Attributes:
        readers: Members of the source group, one answer after the other; the last one repeats.
        shadow_members: Members of the shadow group.
        coordinators: What is known of the coordinators; all work by default.
        asked_groups: Groups whose coordinator got a request.
        closed_groups: Groups that this principal may not read.
        may_write_id: WRITE on transactional ids is granted.
        longest_transaction: `transaction.max.timeout.ms` of the target.
        session_range: The shortest and the longest session of a group of the source.
        largest_message: `message.max.bytes` of the target's brokers.
    """

    flow: Flow = FLOW
    source: FakeTopics = field(default_factory=FakeTopics)
    target: FakeTopics = field(default_factory=FakeTopics)
    metadata: FakeMetadata = field(default_factory=FakeMetadata)
    reader: FakeTarget = field(default_factory=FakeTarget)
    source_offsets: FakeOffsets = field(default_factory=FakeOffsets)
    shadow_offsets: FakeOffsets = field(default_factory=FakeOffsets)
    mode: FakeMode = field(default_factory=FakeMode)
    readers: list[list[GroupMember]] = field(default_factory=lambda: [[]])
    shadow_members: list[GroupMember] = field(default_factory=list)
    coordinators: Coordinators = ALL_WORK
    asked_groups: set[str] = field(default_factory=set)
    closed_groups: set[str] = field(default_factory=set)
    may_write_id: bool = True
    longest_transaction: timedelta | None = timedelta(minutes=15)
    session_range: tuple[timedelta, timedelta] | None = (timedelta(seconds=6), timedelta(hours=0.5))
    largest_message: int | None = None

    @property
    def clients(self) -> FlowClusters:
        """The same, as the driver's modules receive it."""
        return FlowClusters(
            flow=self.flow,
            source_topics=cast("Topics", self.source),
            target_topics=cast("Topics", self.target),
            source_metadata=cast("ClusterMetadata", self.metadata),
            target=cast("Any", self.reader),
            source_offsets=cast("CommittedOffsets", self.source_offsets),
            connect_offsets=cast("ConnectOffsets", self.source_offsets),
            shadow_offsets=cast("CommittedOffsets", self.shadow_offsets),
            mode=cast("Any", self.mode),
        )

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Answer every request of a check and of a flow that starts, instead of real clusters."""

        def members(_admin: object, group: str, **_: object) -> list[GroupMember]:
            self.asked_groups.add(group)
            if group == self.flow.shadow_group:
                return self.shadow_members
            return self.readers.pop(0) if len(self.readers) > 1 else self.readers[0]

        def may_commit(_admin: object, group: str) -> bool:
            self.asked_groups.add(group)
            return group not in self.closed_groups

        patch.setattr(check, "check_coordinators", lambda *_, **__: self.coordinators)
        patch.setattr(cluster_facts, "group_members", members)
        patch.setattr(check, "group_members", members)
        patch.setattr(check, "may_commit_in_group", may_commit)
        patch.setattr(check, "may_write_transactional_id", lambda *_: self.may_write_id)
        patch.setattr(check, "longest_transaction", lambda _admin: self.longest_transaction)
        patch.setattr(check, "session_range", lambda _admin: self.session_range)
        patch.setattr(check, "largest_message", lambda _admin: self.largest_message)
        patch.setattr(flow, "open_clusters", lambda _settings: self.clients)


def denied(what: str) -> NotAuthorized:
    """Return a refusal."""
    return NotAuthorized(f"{what}: TOPIC_AUTHORIZATION_FAILED")
