"""Raises the limits of remote topics before topics are mirrored, or refuses the topics."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta

from eos_mirror.core.copy_limits import ConfigSync, refuse_small_limits
from eos_mirror.core.plan import FlowPlan
from eos_mirror.core.topic_configs import LIMIT, Changes, Entry, config_changes, urgent_changes
from eos_mirror.errors import RetriableError
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.topics import Described, Topics

IN_EFFECT = timedelta(seconds=10)
"""How long to wait until a change is in effect; brokers apply one within milliseconds."""

Report = Callable[[Mapping[str, Changes], Mapping[str, str]], None]


def raise_limits(
    plan: FlowPlan, *, source: Topics, target: Topics, sync: ConfigSync, report: Report
) -> dict[str, str]:
    """
    Raise the limits that would make copies refuse records, as far as the config sync allows.

    Args:
        plan: A plan whose remote topics all exist.
        report: Receives the changes by remote topic, and why the target refused some of them.

    Returns:
        Why topics must not be mirrored, by source topic: the copy still accepts only smaller
        messages, or a cluster does not describe one of the two.

    Raises:
        SourceUnavailable, TargetUnavailable: The cluster did not answer in time.
    """
    if not plan.routes:
        return {}
    sources = source.describe(sorted(route.source_topic for route in plan.routes))
    remotes = target.describe(sorted(route.remote_topic for route in plan.routes))
    wanted = _urgent(plan, sources.entries, remotes.entries, sync) if sync.is_on else {}
    denied = target.alter(wanted)
    changed = {remote: wanted[remote] for remote in wanted if remote not in denied}
    refused = _undescribed(plan, sources, remotes) | refuse_small_limits(
        plan, sync, source=sources.values, remote=remotes.values, denied=denied
    )
    mirrored = {r.remote_topic for r in plan.routes if r.source_topic not in refused}
    # a refused topic's reason already quotes the target: it is not reported twice
    report({name: one for name, one in wanted.items() if name in changed.keys() | mirrored}, denied)
    if changed:
        with suppress(RetriableError):
            retrying(lambda _: _check_effect(target, changed), within=IN_EFFECT)
    return refused


def too_small(
    plan: FlowPlan, *, source: Topics, target: Topics, sync: ConfigSync
) -> dict[str, str]:
    """
    Return why topics of a plan are refused because of the limits of their copies. Changes nothing.

    Limits that the flow would raise are not among them.

    Raises:
        SourceUnavailable, TargetUnavailable: The cluster did not answer in time.
    """
    if not (plan.routes and sync.keeps(LIMIT)):
        return {}
    sources = source.describe(sorted(route.source_topic for route in plan.routes))
    remotes = target.describe(sorted(route.remote_topic for route in plan.routes))
    return refuse_small_limits(plan, sync, source=sources.values, remote=remotes.values)


def _undescribed(plan: FlowPlan, sources: Described, remotes: Described) -> dict[str, str]:
    found = {}
    for route in plan.routes:
        why = sources.refused.get(route.source_topic) or remotes.refused.get(route.remote_topic)
        if why is not None:
            found[route.source_topic] = str(why)
    return found


def _urgent(
    plan: FlowPlan,
    sources: Mapping[str, Mapping[str, Entry]],
    remotes: Mapping[str, Mapping[str, Entry]],
    sync: ConfigSync,
) -> dict[str, Changes]:
    found = {}
    for route in plan.routes:
        here, there = sources.get(route.source_topic), remotes.get(route.remote_topic)
        if here is not None and there is not None:
            changes = config_changes(here, there, sync.rules)
            found[route.remote_topic] = urgent_changes(changes, there)
    return {remote: changes for remote, changes in found.items() if changes}


def _check_effect(target: Topics, changed: Mapping[str, Changes]) -> None:
    """
    Raise `RetriableError` until the changes are in effect.

    Tasks start next, and a broker with the old limit would refuse their records.
    """
    now = target.describe(sorted(changed)).values
    for remote, changes in changed.items():
        if not changes.set.items() <= now.get(remote, {}).items():
            raise RetriableError(f"{remote} does not have its new configuration yet")
