"""The specification of a cluster, and the server.properties that it results in. Pure functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

CONTROLLER_ID = 100
SUPER_USER = "admin"
"""A user of every cluster with SASL. The password is the same word."""
MOST_REPLICAS = 3
ACCESS_CONTROL = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{SUPER_USER};User:ANONYMOUS",
}
"""Every client of an internal listener is ANONYMOUS, so this must be a super user."""


class Security(StrEnum):
    """How clients connect to the cluster."""

    PLAINTEXT = "PLAINTEXT"
    TLS = "SSL"
    SASL_PLAIN = "PLAIN"
    SASL_SCRAM = "SCRAM-SHA-256"

    @property
    def protocol(self) -> str:
        """Return Kafka's `security.protocol`."""
        return "SASL_PLAINTEXT" if self.is_sasl else self.value

    @property
    def is_sasl(self) -> bool:
        """Return whether clients log in with a name and a password."""
        return self in (Security.SASL_PLAIN, Security.SASL_SCRAM)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """A requested cluster. `KafkaCluster` documents the fields."""

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
        """Return the default replication factor of topics."""
        return min(MOST_REPLICAS, self.nodes)

    @property
    def min_isr(self) -> int:
        """Return the minimum ISR: of three replicas one may die; of fewer, none."""
        return 2 if self.replication_factor == MOST_REPLICAS else 1

    @property
    def broker_ids(self) -> Sequence[int]:
        """Return the node ids of the brokers."""
        return range(1, self.nodes + 1)

    @property
    def controller_ids(self) -> Sequence[int]:
        """Return the node ids of the controllers."""
        return self.broker_ids if self.controllers == "combined" else (CONTROLLER_ID,)

    @property
    def node_ids(self) -> Sequence[int]:
        """Return the node ids of all processes; a separate controller comes first."""
        if self.controllers == "combined":
            return self.broker_ids
        return (CONTROLLER_ID, *self.broker_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    """
    Ports of one node; ports of a role that it does not have stay unused.

    Attributes:
        client: The port that tests connect to.
        internal: PLAINTEXT, without SASL: for other brokers, and for our own administration.
        proxied: Where the broker listens for clients that connect through a fault proxy.
        proxy: Where that proxy listens; the broker advertises this port to them.
    """

    client: int
    internal: int
    controller: int
    proxied: int
    proxy: int


def server_properties(
    spec: ClusterSpec, node_id: int, *, ports: Mapping[int, NodePorts], data: Path
) -> dict[str, str]:
    """Return the configuration of one node. `broker_config` of the spec overrides everything."""
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
        settings |= {"broker.rack": rack_of(node_id), **_broker_settings(spec, own)}
    if node_id in spec.controller_ids:
        listeners = [settings.get("listeners"), f"CONTROLLER://127.0.0.1:{own.controller}"]
        settings["listeners"] = ",".join(str(listener) for listener in listeners if listener)
    roles = {"broker": spec.broker_ids, "controller": spec.controller_ids}
    settings["process.roles"] = ",".join(role for role, ids in roles.items() if node_id in ids)
    settings |= spec.broker_config
    return {key: property_text(value) for key, value in settings.items()}


def rack_of(node_id: int) -> str:
    """Return `broker.rack` of a node: each has its own."""
    return f"rack-{node_id}"


def shared_settings(spec: ClusterSpec) -> dict[str, object]:
    """Return the settings that all nodes share, on every backend."""
    return {**_timeouts(spec), **_small_footprint(spec)}


def property_text(value: object) -> str:
    """Return a value as Java writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def login(security: Security, user: str, password: str) -> str:
    """Return Kafka's `sasl.jaas.config` of a client."""
    return f'{_login_module(security)} required username="{user}" password="{password}";'


def properties_text(properties: Mapping[str, str]) -> str:
    """Return a Java properties file. Only backslashes in values are escaped."""
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
    """Return the brokers' JAAS configuration: PLAIN has its users here, SCRAM in the metadata."""
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
    Return short timeouts, so that a killed broker is fenced and readmitted within seconds.

    Kafka's default session is nine seconds. With one broker a shorter session only hurts: on a
    busy machine the broker is fenced, moves its coordinators to itself, and may lose a
    transaction's markers meanwhile.
    """
    return {
        "broker.session.timeout.ms": 3000 if spec.nodes == 1 else 2500,
        "broker.heartbeat.interval.ms": 500,
        "controller.quorum.election.timeout.ms": 500,
        "controller.quorum.fetch.timeout.ms": 1000,
        "group.initial.rebalance.delay.ms": 0,
    }


def _small_footprint(spec: ClusterSpec) -> dict[str, object]:
    """Return small settings: one partition per internal topic, because fifty take too long."""
    replicas, min_isr = spec.replication_factor, spec.min_isr
    return {
        "auto.create.topics.enable": False,
        "log.retention.ms": -1,  # else old made-up timestamps expire after half a minute
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
        # each thread of an idle broker wakes up three times a second
        "num.network.threads": 1 if spec.fast_start else 2,
        "num.io.threads": 2 if spec.fast_start else 3,
        "metadata.max.idle.interval.ms": 10_000,  # a third of what an idle broker costs
        "log.cleaner.dedupe.buffer.size": 2_097_152,
    }


def _addresses(ports: Mapping[str, int]) -> str:
    return ",".join(f"{listener}://127.0.0.1:{port}" for listener, port in ports.items())
