"""The user's client settings of one flow, checked and translated to librdkafka's names."""

from collections.abc import Callable, Mapping, Sequence

from eos_mirror.core.flow import Flow
from eos_mirror.settings.forced import enforce_connection, enforce_member, enforce_writer
from eos_mirror.settings.layers import Layer, obeyed, reader_layers, writer_layers
from eos_mirror.settings.mask import Masked
from eos_mirror.settings.model import ClusterSettings, FlowClients
from eos_mirror.settings.properties import Property
from eos_mirror.settings.resolve import Resolver
from eos_mirror.settings.security import Given
from eos_mirror.settings.translate import Translation, translate

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


def layers_of(flow: Flow) -> FlowLayers:
    """Return the layers of every client of a flow, by role."""
    return {
        "source_consumer": reader_layers(flow, side="source", role="consumer"),
        "source_admin": reader_layers(flow, side="source", role="admin"),
        "target_producer": writer_layers(flow),
        "target_admin": reader_layers(flow, side="target", role="admin"),
    }


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
    said = {
        role: _said(f"{flow}.{PREFIXES[role]}", _ENFORCE[role], obeyed(lines, layers), resolver)
        for role, layers in layers_of(flow).items()
    }
    source, target = clusters[flow.source], clusters[flow.target]
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
    said = _said(f"{flow}.{PREFIXES[role]}", _ENFORCE[role], obeyed(lines, layers), resolver)
    said["bootstrap.servers"] = ",".join(cluster.bootstrap_servers)
    return said


def _said(
    owner: str,
    enforce: Callable[[Translation], None],
    lines: Mapping[str, Property],
    resolver: Resolver,
) -> Masked:
    given = {}
    for name, line in lines.items():
        text = resolver.text(line)
        if text is not None:
            given[name] = Given(value=text, intro=f"{line.place}: {line.key}")
            resolver.report.origins[owner + name] = line.place
    translated = translate(given)
    enforce(translated)
    resolver.report.fault(*translated.faults)
    resolver.report.note(*translated.notes)
    return translated.config
