"""Rules that involve more than one key of a flow."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eos_mirror.errors import ConfigError
from eos_mirror.settings.connector import ConnectorType, SourceSupport
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.plugins import (
    config_filter_of,
    group_filter_of,
    handler_of,
    listener_of,
    policy_of,
    topic_filter_of,
)
from eos_mirror.settings.resolve import DEFAULT, Resolver
from eos_mirror.settings.values import PolicyClass


def fit_mode(
    values: dict[str, Any], connector: Mapping[str, Any], resolver: Resolver, owners: Sequence[str]
) -> None:
    """Let a source connector mirror exactly once only with the key that Kafka Connect has."""
    if connector["type"] is not ConnectorType.SOURCE:
        return
    exactly_once = connector["exactly_once_support"] is SourceSupport.ENABLED
    place = resolver.report.origins.get(owners[0] + "transaction.producer", DEFAULT)
    if place != DEFAULT and values["exactly_once"] is not exactly_once:
        needed = SourceSupport.ENABLED if values["exactly_once"] else SourceSupport.DISABLED
        resolver.report.fault(
            f"{place}: transaction.producer contradicts exactly.once.source.support, which counts "
            f"for a source connector: set that to {needed.value}, or remove this line"
        )
    values["exactly_once"] = exactly_once


def check_together(flow: FlowSettings, resolver: Resolver, owners: Sequence[str]) -> None:
    """Check the rules that involve more than one key."""

    def fault(names: Sequence[str], what: str) -> None:
        places = (resolver.report.origins[owners[0] + name] for name in names)
        place = next(one for one in places if one != DEFAULT)
        resolver.report.fault(f"{place}: flow {flow.flow}: {what}")

    interval, timeout = "transaction.boundary.interval.ms", "transaction.timeout.ms"
    if flow.transaction_interval >= flow.transaction_timeout:
        fault((interval, timeout), f"{interval} must be below {timeout}")
    min_isr, factor = "internal.topic.min.insync.replicas", "internal.topic.replication.factor"
    least, replicas = (
        flow.internal_topic_min_insync_replicas,
        flow.internal_topic_replication_factor,
    )
    if least is not None and replicas is not None and least > replicas:
        fault((min_isr, factor), f"{min_isr} must not exceed {factor}")
    if flow.groups.sync_offsets and not flow.groups.emit_checkpoints:
        emit = "emit.checkpoints.enabled"
        fault((emit,), f"sync.group.offsets.enabled needs {emit} = true")
    if flow.filters.provenance and flow.exactly_once:
        fault(
            ("provenance.headers.enabled",),
            "provenance.headers.enabled needs transaction.producer = false: exactly once cannot "
            "hold in a topic that others write, too",
        )
    _check_classes(flow, fault)
    _check_alias(flow, resolver, owners)
    separator, source = flow.replication_policy_separator, flow.flow.source
    if separator in source and flow.replication_policy == PolicyClass.DEFAULT:
        resolver.report.note(
            f"flow {flow.flow}: alias '{source}' contains the separator '{separator}': "
            "the name of a remote topic does not show its source"
        )


def _check_classes(flow: FlowSettings, fault: Callable[[Sequence[str], str], None]) -> None:
    """Check that the classes of a flow exist and accept their settings."""
    if not flow.replication_policy_separator and flow.replication_policy == PolicyClass.DEFAULT:
        key = "replication.policy.separator"
        fault(
            (key,),
            f"{key} may be empty only with replication.policy.class = IdentityReplicationPolicy, "
            "which keeps the names of topics",
        )
        return
    for name, of in (
        ("replication.policy.class", policy_of),
        ("topic.filter.class", topic_filter_of),
        ("group.filter.class", group_filter_of),
        ("config.property.filter.class", config_filter_of),
        ("message.handler", handler_of),
        ("rebalance.listener", listener_of),
    ):
        try:
            of(flow)
        except ConfigError as exc:
            fault((name,), str(exc))


def _check_alias(flow: FlowSettings, resolver: Resolver, owners: Sequence[str]) -> None:
    """Check that remote topics are not to be named after another alias, as in MirrorMaker 2."""
    line = resolver.line("source.cluster.alias", owners)
    if line is None or flow.replication_policy != PolicyClass.DEFAULT:
        return
    alias = line.value.strip()
    if alias == flow.flow.source or not (alias or flow.replication_policy_separator):
        return
    fix = (
        f"use '{alias}' in clusters"
        if alias
        else "replication.policy.class = IdentityReplicationPolicy keeps the names of topics"
    )
    resolver.report.fault(
        f"{line.place}: {line.key} = {alias}: flow {flow.flow} names remote topics after "
        f"'{flow.flow.source}'; {fix}, or remove the line"
    )
