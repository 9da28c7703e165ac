"""The user's client settings of one flow, checked and translated to librdkafka's names."""

from collections.abc import Callable, Mapping, Sequence

from eos_mirror.core.flow import Flow
from eos_mirror.settings.forced import enforce_connection, enforce_member, enforce_writer
from eos_mirror.settings.layers import Layer, obeyed, reader_layers, writer_layers
from eos_mirror.settings.librdkafka import Role
from eos_mirror.settings.mask import Masked
from eos_mirror.settings.model import ClusterSettings, FlowClients
from eos_mirror.settings.properties import Property
from eos_mirror.settings.resolve import Resolver
from eos_mirror.settings.security import Given
from eos_mirror.settings.translate import Translation, translate
from eos_mirror.settings.values import split_list

FlowLayers = Mapping[str, Sequence[Layer]]

PREFIXES = {
    "source_consumer": "source.consumer.",
    "source_admin": "source.admin.",
    "target_producer": "producer.override.",
    "target_admin": "target.admin.",
}
"""Role to its most specific flow-level prefix. Origins are recorded under this prefix."""

_ENFORCE: Mapping[str, Callable[[Translation], None]] = {
    "source_consumer": enforce_member,
    "source_admin": enforce_connection,
    "target_producer": enforce_writer,
    "target_admin": enforce_connection,
}
OF_THE_FLOW = {
    "source_consumer": "session.timeout.ms",
    "target_producer": "transaction.timeout.ms",
}
"""By role, the client setting that is one of the whole flow here."""

BROKERS = ("bootstrap.servers", "metadata.broker.list")

_KIND = {
    "source_consumer": Role.CONSUMER,
    "source_admin": Role.ADMIN,
    "target_producer": Role.PRODUCER,
    "target_admin": Role.ADMIN,
}


def layers_of(flow: Flow) -> FlowLayers:
    """Return the layers of every client of a flow, by role."""
    return {
        "source_consumer": reader_layers(flow, side="source", role="consumer"),
        "source_admin": reader_layers(flow, side="source", role="admin"),
        "target_producer": writer_layers(flow),
        "target_admin": reader_layers(flow, side="target", role="admin"),
    }


def flow_lines(flow: Flow, lines: Mapping[str, Property]) -> dict[str, Property]:
    """Return the lines with a client prefix that stand for a setting of the whole flow, by name."""
    layers = layers_of(flow)
    found = {name: obeyed(lines, layers[role]).get(name) for role, name in OF_THE_FLOW.items()}
    return {name: line for name, line in found.items() if line is not None}


def connect(
    flow: Flow,
    clusters: Mapping[str, ClusterSettings | None],
    lines: Mapping[str, Property],
    resolver: Resolver,
) -> FlowClients | None:
    """
    Translate and check the client settings of a flow.

    Returns:
        None if a cluster has no brokers; that fault is already reported.
    """
    source, target = clusters[flow.source], clusters[flow.target]
    said = {
        role: _said(
            f"{flow}.",
            role,
            obeyed(lines, layers),
            source if role.startswith("source") else target,
            resolver,
        )
        for role, layers in layers_of(flow).items()
    }
    if source is None or target is None:
        return None
    for role, config in said.items():
        cluster = source if role.startswith("source") else target
        config["bootstrap.servers"] = ",".join(cluster.bootstrap_servers)
    return FlowClients(**said)


def connect_target(
    flow: Flow, cluster: ClusterSettings, lines: Mapping[str, Property], resolver: Resolver
) -> Masked:
    """Translate and check the settings of the target's admin client only."""
    role = "target_admin"
    layers = layers_of(flow)[role]
    said = _said(f"{flow}.", role, obeyed(lines, layers), cluster, resolver)
    said["bootstrap.servers"] = ",".join(cluster.bootstrap_servers)
    return said


def _said(
    owner: str,
    role: str,
    lines: Mapping[str, Property],
    cluster: ClusterSettings | None,
    resolver: Resolver,
) -> Masked:
    given = {}
    for name, line in lines.items():
        text = resolver.text(line)
        if text is None or name == OF_THE_FLOW.get(role):
            continue
        if not (name in BROKERS and cluster and split_list(text) == cluster.bootstrap_servers):
            given[name] = Given(value=text, intro=f"{line.place}: {line.key}")
            resolver.report.origins[owner + PREFIXES[role] + name] = line.place
    translated = translate(given, _KIND[role])
    _ENFORCE[role](translated)
    resolver.report.fault(*translated.faults)
    resolver.report.note(*translated.notes)
    return translated.config
