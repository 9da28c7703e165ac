"""What a cluster shall be, and the server.properties that make it so. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

CONTROLLER_ID = 100
SUPER_USER = "admin"
"""Exists on every cluster with SASL; also the password."""
MOST_REPLICAS = 3
ACCESS_CONTROL = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{SUPER_USER};User:ANONYMOUS",
}
"""ANONYMOUS is whoever comes over an internal listener, so it has to be a super user."""


class Security(StrEnum):
    """How clients speak to the cluster."""

    PLAINTEXT = "PLAINTEXT"
    TLS = "SSL"
    SASL_PLAIN = "PLAIN"
    SASL_SCRAM = "SCRAM-SHA-256"

    @property
    def protocol(self) -> str:
        """Kafka's `security.protocol`."""
        return "SASL_PLAINTEXT" if self.is_sasl else self.value

    @property
    def is_sasl(self) -> bool:
        """Whether clients log in with a name and a password."""
        return self in (Security.SASL_PLAIN, Security.SASL_SCRAM)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """A cluster as it was asked for; `KafkaCluster` says what each field means."""

    nodes: int = 1
    name: str = "kafka"
    controllers: Literal["combined", "separate"] = "combined"
    security: Security = Security.PLAINTEXT
    users: Mapping[str, str] = field(default_factory=dict)
    authorizer: bool = False
    broker_config: Mapping[str, object] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    heap: str = "384m"
    fast_start: bool = True
    proxied: bool = False

    @property
    def replication_factor(self) -> int:
        """What topics get when nobody says."""
        return min(MOST_REPLICAS, self.nodes)

    @property
    def min_isr(self) -> int:
        """With three replicas one may die; with fewer none."""
        return 2 if self.replication_factor == MOST_REPLICAS else 1

    @property
    def broker_ids(self) -> Sequence[int]:
        """Node ids of the brokers."""
        return range(1, self.nodes + 1)

    @property
    def controller_ids(self) -> Sequence[int]:
        """Node ids of the controllers."""
        return self.broker_ids if self.controllers == "combined" else (CONTROLLER_ID,)

    @property
    def node_ids(self) -> Sequence[int]:
        """Node ids of all processes; the controller first, if it has its own."""
        if self.controllers == "combined":
            return self.broker_ids
        return (CONTROLLER_ID, *self.broker_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    """
    Ports of one node; those of a role that it does not have stay unused.

    Attributes:
        client: What tests connect to.
        internal: PLAINTEXT, without SASL: brokers among each other, and our own administration.
        proxied: Where the broker listens for clients that come through a fault proxy.
        proxy: Where that proxy listens: what the broker advertises to them.
    """

    client: int
    internal: int
    controller: int
    proxied: int
    proxy: int


def server_properties(
    spec: ClusterSpec, node_id: int, *, ports: Mapping[int, NodePorts], data: Path
) -> dict[str, str]:
    """The configuration of one node. `broker_config` of the spec wins over everything."""
    own = ports[node_id]
    voters = ",".join(f"{node}@127.0.0.1:{ports[node].controller}" for node in spec.controller_ids)
    settings: dict[str, object] = {
        "node.id": node_id,
        "log.dirs": data,
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": _protocol_map(spec),
        **shared_settings(spec),
        **(ACCESS_CONTROL if spec.authorizer else {}),
    }
    if node_id in spec.broker_ids:
        settings |= _broker_settings(spec, own)
    if node_id in spec.controller_ids:
        listeners = [settings.get("listeners"), f"CONTROLLER://127.0.0.1:{own.controller}"]
        settings["listeners"] = ",".join(str(listener) for listener in listeners if listener)
    roles = {"broker": spec.broker_ids, "controller": spec.controller_ids}
    settings["process.roles"] = ",".join(role for role, ids in roles.items() if node_id in ids)
    settings |= spec.broker_config
    return {key: property_text(value) for key, value in settings.items()}


def shared_settings(spec: ClusterSpec) -> dict[str, object]:
    """What every node has in common, whoever runs it."""
    return {**_timeouts(spec), **_small_footprint(spec)}


def property_text(value: object) -> str:
    """A value as Java writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def login(security: Security, user: str, password: str) -> str:
    """Kafka's `sasl.jaas.config` of a client."""
    return f'{_login_module(security)} required username="{user}" password="{password}";'


def properties_text(properties: Mapping[str, str]) -> str:
    """A Java properties file. Values must not need escaping; backslashes are doubled."""
    return "".join(
        f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in properties.items()
    )


def _broker_settings(spec: ClusterSpec, own: NodePorts) -> dict[str, object]:
    listening = {"CLIENT": own.client, "INTERNAL": own.internal}
    advertised = dict(listening)
    if spec.proxied:
        listening["PROXIED"] = own.proxied
        advertised["PROXIED"] = own.proxy
    settings: dict[str, object] = {
        "listeners": _addresses(listening),
        "advertised.listeners": _addresses(advertised),
        "inter.broker.listener.name": "INTERNAL",
    }
    if not spec.security.is_sasl:
        return settings
    settings["sasl.enabled.mechanisms"] = spec.security.value
    for listener in sorted(listening.keys() - {"INTERNAL"}):
        key = f"listener.name.{listener.lower()}.{spec.security.value.lower()}.sasl.jaas.config"
        settings[key] = _accepted_logins(spec)
    return settings


def _accepted_logins(spec: ClusterSpec) -> str:
    """PLAIN keeps its users here; those of SCRAM live in the cluster's metadata."""
    if spec.security is Security.SASL_SCRAM:
        return f"{_login_module(spec.security)} required;"
    entries = " ".join(f'user_{user}="{password}"' for user, password in spec.users.items())
    return f"{_login_module(spec.security)} required {entries};"


def _login_module(security: Security) -> str:
    package = "org.apache.kafka.common.security"
    if security is Security.SASL_SCRAM:
        return f"{package}.scram.ScramLoginModule"
    return f"{package}.plain.PlainLoginModule"


def _protocol_map(spec: ClusterSpec) -> str:
    protocols = {
        "CLIENT": spec.security.protocol,
        "PROXIED": spec.security.protocol,
        "INTERNAL": "PLAINTEXT",
        "CONTROLLER": "PLAINTEXT",
    }
    return ",".join(f"{listener}:{protocol}" for listener, protocol in protocols.items())


def _timeouts(spec: ClusterSpec) -> dict[str, object]:
    """
    A killed broker is noticed and let in again within seconds, not within a session of nine.

    Where nobody can take over, a short session only hurts: on a busy machine the broker is shut
    out, moves its coordinators to itself, and may lose a transaction's markers on the way.
    """
    return {
        "broker.session.timeout.ms": 3000 if spec.nodes == 1 else 2500,
        "broker.heartbeat.interval.ms": 500,
        "controller.quorum.election.timeout.ms": 500,
        "controller.quorum.fetch.timeout.ms": 1000,
        "group.initial.rebalance.delay.ms": 0,
    }


def _small_footprint(spec: ClusterSpec) -> dict[str, object]:
    """One partition per internal topic: creating fifty takes longer than most tests."""
    replicas, min_isr = spec.replication_factor, spec.min_isr
    return {
        "auto.create.topics.enable": False,
        "log.retention.ms": -1,  # or records with a made-up timestamp vanish after half a minute
        "default.replication.factor": replicas,
        "min.insync.replicas": min_isr,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": min_isr,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": min_isr,
        "share.coordinator.state.topic.num.partitions": 1,
        # threads of an idle broker wake up three times a second each
        "num.network.threads": 1 if spec.fast_start else 2,
        "num.io.threads": 2 if spec.fast_start else 3,
        "metadata.max.idle.interval.ms": 10_000,  # a third of what an idle broker costs
        "log.cleaner.dedupe.buffer.size": 2_097_152,
    }


def _addresses(ports: Mapping[str, int]) -> str:
    return ",".join(f"{listener}://127.0.0.1:{port}" for listener, port in ports.items())
