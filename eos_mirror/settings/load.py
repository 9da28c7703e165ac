"""
Loads an mm2.properties into checked settings.

Nothing is written and no cluster is contacted. All faults of the configuration are reported
together.
"""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.errors import ConfigError
from eos_mirror.settings.connect import connect, connect_target, flow_lines, layers_of
from eos_mirror.settings.connector import ConnectorSettings
from eos_mirror.settings.expand import providers_of
from eos_mirror.settings.filters import FilterSettings
from eos_mirror.settings.groups import GroupSettings
from eos_mirror.settings.heartbeats import HeartbeatSettings
from eos_mirror.settings.keys import (
    CLUSTER_ROWS,
    CLUSTERS_ROW,
    ENABLED_ROW,
    FLOW_PARTS,
    HEARTBEAT_ROWS,
    METRIC_ROWS,
    REST_ROWS,
    ROWS,
    TOP_ROWS,
)
from eos_mirror.settings.layers import heard
from eos_mirror.settings.mask import Masked
from eos_mirror.settings.metrics import MetricSettings
from eos_mirror.settings.model import (
    ClusterSettings,
    FlowSettings,
    Settings,
)
from eos_mirror.settings.properties import Property, read_properties
from eos_mirror.settings.queues import with_queues
from eos_mirror.settings.refusals import RefusalSettings
from eos_mirror.settings.resolve import Report, Resolver
from eos_mirror.settings.rest import RestSettings
from eos_mirror.settings.rules import check_together, fit_mode
from eos_mirror.settings.sections import AUDITS, Sections, nearest, sort_lines
from eos_mirror.settings.transforms import transforms_of
from eos_mirror.settings.values import Runtime

USUAL_MIN_ISR = 2
_PLACE = re.compile(r".*?:(\d+): ")

Clusters = Mapping[str, ClusterSettings | None]
"""Clusters by alias; None if the brokers are missing or wrong, which is already reported."""


def load_settings(
    path: str | Path,
    *,
    clusters: Collection[str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """
    Read a configuration file, check it and convert its values to types.

    Args:
        path: An mm2.properties.
        clusters: Only flows *into* these aliases (`--clusters`); None means all.
        environ: The variables that `${env:X}` reads.

    Raises:
        ConfigError: Lists every fault, one line each, with file and line. The user fixes them.

    Source: KIP-382, MirrorMakerConfig; docs/configuration.md.
    """
    path = Path(path)
    return check_properties(path, read_properties(path), clusters=clusters, environ=environ)


def check_properties(
    path: Path,
    properties: Sequence[Property],
    *,
    clusters: Collection[str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """
    Check the properties of a configuration file and convert their values to types.

    Args:
        path: The configuration file, for messages; it is not read.
        properties: Its properties, in order.
        clusters: Only flows *into* these aliases; None means all.
        environ: The variables that `${env:X}` reads.

    Raises:
        ConfigError: Lists every fault, one line each, with file and line. The user fixes them.
    """
    report = Report()
    providers = providers_of(properties, environ)
    aliases = _aliases(path, properties, Resolver(providers=providers, report=report, lines={}))
    sections = sort_lines(properties, aliases)
    report.hear(sections.faults, sections.notes)
    resolver = Resolver(providers=providers, report=report, lines=sections.settings)
    top, metrics = resolver.values(TOP_ROWS, ("",)), resolver.values(METRIC_ROWS, ("",))
    rest = _rest(resolver)
    mirrors, audits = _spark(sections.spark, resolver)
    local = top.get("runtime") is Runtime.LOCAL
    known = {alias: _cluster(alias, path, resolver) for alias in aliases}
    enabled = _enabled(aliases, path, sections.flows, resolver)
    _note_unused(enabled, aliases, sections, report)
    if clusters is not None:
        enabled = _into(clusters, enabled, aliases, report)
    flows = [_flow(flow, known, sections.clients, resolver) for flow in enabled]
    near = [Flow(s, t) for t in clusters or aliases for s in aliases if s != t and t in known]
    pairs = [_heartbeats(flow, known, sections.clients, resolver) for flow in near]
    if report.faults:
        raise ConfigError(*sorted(report.faults, key=_line_number))
    return Settings(
        path=path,
        clusters=tuple(cluster for cluster in known.values() if cluster is not None),
        flows=with_queues([flow for flow in flows if flow is not None]),
        heartbeats=tuple(pair for pair in pairs if pair is not None),
        metrics=MetricSettings(**metrics),
        rest=rest,
        spark=mirrors,
        verify_spark=None if local and not audits else Masked({**mirrors, **audits}),
        notes=tuple(report.notes),
        origins=report.origins,
        **top,
    )


def _line_number(fault: str) -> int:
    """Return the line number, to sort faults; faults of the whole file come first."""
    place = _PLACE.match(fault)
    return int(place[1]) if place else 0


def _aliases(path: Path, properties: Sequence[Property], resolver: Resolver) -> tuple[str, ...]:
    """
    Return the aliases; no other line can be interpreted without them.

    Raises:
        ConfigError: `clusters` is missing or wrong.
    """
    lines = [p for p in properties if p.key == CLUSTERS_ROW.name]
    if not lines:
        raise ConfigError(f"{path}: clusters is missing; add clusters = A, B")
    value = resolver.parse(CLUSTERS_ROW, lines[-1])
    if value is None:
        raise ConfigError(*resolver.report.faults)
    aliases: tuple[str, ...] = value[0]
    return aliases


def _spark(lines: Mapping[str, Property], resolver: Resolver) -> tuple[Masked, Masked]:
    """Return `spark.*` and `verify.spark.*`, by Spark's names."""
    resolver.report.origins.update({name: line.place for name, line in lines.items()})
    mirrors, audits = Masked(), Masked()
    for name, line in lines.items():
        key = name.removeprefix(AUDITS)
        (mirrors if key == name else audits)[key] = resolver.text(line) or ""
    return mirrors, audits


def _rest(resolver: Resolver) -> RestSettings:
    """Return the settings of the HTTP server; what has no effect is noted."""
    found = {"listeners": (), "key_store": "", "token": "", **resolver.values(REST_ROWS, ("",))}
    rest = RestSettings(**found)
    for text in rest.notes:
        resolver.report.note(f"{resolver.report.origins['listeners']}: listeners: {text}")
    return rest


def _cluster(alias: str, path: Path, resolver: Resolver) -> ClusterSettings | None:
    owners = (f"{alias}.", "")
    values = resolver.values(CLUSTER_ROWS, owners)
    if resolver.line("bootstrap.servers", owners) is None:
        resolver.report.fault(
            f"{path}: cluster {alias} has no brokers; add {alias}.bootstrap.servers = host:port"
        )
    return ClusterSettings(alias=alias, **values) if values else None


def _enabled(
    aliases: Sequence[str], path: Path, named: Collection[tuple[str, str]], resolver: Resolver
) -> list[Flow]:
    """Return every enabled flow, by target, then by source, in the order of `clusters`."""
    flows = [Flow(s, t) for t in aliases for s in aliases if (s, t) in named]
    enabled = [flow for flow in flows if resolver.value(ENABLED_ROW, (f"{flow}.",)) == (True,)]
    if not enabled and not resolver.report.faults:
        pair = "->".join((*aliases, "B")[:2])
        resolver.report.fault(f"{path}: no flow is enabled; add {pair}.enabled = true")
    return enabled


def _into(
    wanted: Collection[str], enabled: Sequence[Flow], aliases: Sequence[str], report: Report
) -> list[Flow]:
    """Return the flows whose target was asked for."""
    for alias in wanted:
        if alias not in aliases:
            meant = nearest(alias, aliases)
            fix = f"did you mean '{meant}'?" if meant else f"clusters = {', '.join(aliases)}"
            report.fault(f"--clusters: '{alias}' is not in clusters; {fix}")
    flows = [flow for flow in enabled if flow.target in wanted]
    if not flows and not report.faults:
        report.fault(f"--clusters: no flow into {', '.join(wanted)} is enabled")
    return flows


def _flow(
    flow: Flow, clusters: Clusters, lines: Mapping[str, Property], resolver: Resolver
) -> FlowSettings | None:
    """Return the settings of a flow; None if some are wrong, which is then reported."""
    owners = (f"{flow}.", f"{flow.target}.", "")
    found = {part: resolver.values(rows, owners) for part, rows in FLOW_PARTS.items()}
    values = found.pop("") | _taken(flow, lines, owners, resolver)
    factor = values.get("internal_topic_replication_factor", USUAL_MIN_ISR)
    usual = None if factor is None else min(USUAL_MIN_ISR, factor)
    values.setdefault("internal_topic_min_insync_replicas", usual)
    clients = connect(flow, clusters, lines, resolver)
    count = len(values) + sum(map(len, found.values()))
    if clients is None or count < sum(map(len, FLOW_PARTS.values())):
        return None
    fit_mode(values, found["connector"], resolver, owners)
    filters = found["filters"]
    settings = FlowSettings(
        flow=flow,
        clients=clients,
        groups=GroupSettings(**found["groups"]),
        filters=FilterSettings(**filters),
        refusals=RefusalSettings(**found["refusals"]),
        connector=ConnectorSettings(**found["connector"]),
        transforms=transforms_of(flow, FilterSettings(**filters), owners, resolver),
        **values,
    )
    check_together(settings, resolver, owners)
    return settings


def _taken(
    flow: Flow, lines: Mapping[str, Property], owners: Sequence[str], resolver: Resolver
) -> dict[str, Any]:
    """
    Return settings of the flow that only lines with a client prefix set.

    MirrorMaker 2 has no such settings of a flow, so its configurations set them for the client.
    """
    found = {}
    for name, line in flow_lines(flow, lines).items():
        row, own = ROWS[name], resolver.line(name, owners)
        value = resolver.parse(row, line)
        if value is None:
            continue
        if own is None:
            found[row.attribute] = value[0]
            resolver.report.origins[owners[0] + name] = line.place
            resolver.report.note(f"{line.place}: {line.key}: taken as {name} of flow {flow}")
        elif resolver.parse(row, own) != value:
            why = f"no effect: {own.key} in line {own.line} counts"
            resolver.report.note(f"{line.place}: {line.key}: {why}")
    return found


def _heartbeats(
    flow: Flow, clusters: Clusters, lines: Mapping[str, Property], resolver: Resolver
) -> HeartbeatSettings | None:
    """Return a pair's heartbeat settings; None if disabled, or wrong, which is then reported."""
    values = resolver.values(HEARTBEAT_ROWS, (f"{flow}.", f"{flow.target}.", ""))
    target = clusters[flow.target]
    if target is None or len(values) < len(HEARTBEAT_ROWS) or not values["enabled"]:
        return None
    client = connect_target(flow, target, lines, resolver)
    return HeartbeatSettings(flow=flow, client=client, **values)


def _note_unused(
    enabled: Sequence[Flow], aliases: Sequence[str], sections: Sections, report: Report
) -> None:
    """Add a note for each line that no enabled flow uses."""
    _note_unheard(enabled, sections.clients, report)
    _note_untargeted(enabled, aliases, sections.settings, report)


def _note_untargeted(
    enabled: Sequence[Flow],
    aliases: Sequence[str],
    lines: Mapping[str, Property],
    report: Report,
) -> None:
    """Add a note for each setting of flows into a cluster that is no target."""
    rows = [row for part in FLOW_PARTS.values() for row in part]
    targets = {flow.target for flow in enabled}
    report.note(
        *(
            f"{lines[key].place}: {key}: no effect: no flow into {alias} is enabled"
            for alias in aliases
            for key in (f"{alias}.{row.name}" for row in rows)
            if alias not in targets and key in lines
        )
    )


def _note_unheard(enabled: Sequence[Flow], lines: Mapping[str, Property], report: Report) -> None:
    """Add a note for each client setting that no client of an enabled flow uses."""
    layers = [role for flow in enabled for role in layers_of(flow).values()]
    used = {key for role in layers for key in heard(lines, role)}
    report.note(
        *(
            f"{line.place}: {key}: no effect: no client of an enabled flow uses it"
            for key, line in lines.items()
            if key not in used
        )
    )
