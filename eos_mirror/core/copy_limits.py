"""Decides by their configuration whether a copy accepts the records of its source topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from eos_mirror.core.plan import FlowPlan, Route
from eos_mirror.core.topic_configs import COMPACT, LIMIT, POLICY, ConfigFilter

SYNC_KEY: Final = "sync.topic.configs.enabled"

Configs = Mapping[str, Mapping[str, str]]
"""Effective values by configuration entry, by topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSync:
    """
    How the configuration of source topics is synced to their remote topics.

    Attributes:
        rules: Which entries are synced.
        is_on: `sync.topic.configs.enabled`: entries are also synced after a topic was created.
        filter_key: The setting that excludes entries.
    """

    rules: ConfigFilter
    is_on: bool
    filter_key: str

    def excludes(self, name: str) -> bool:
        """Return True if a copy has its own value of the entry, from its creation on."""
        return not self.rules.takes(name)

    def keeps(self, name: str) -> bool:
        """Return True if an existing copy has its own value of the entry."""
        return self.excludes(name) or not self.is_on


def refuse_small_limits(
    plan: FlowPlan,
    sync: ConfigSync,
    *,
    source: Configs,
    remote: Configs,
    denied: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """
    Find topics whose copies accept only smaller messages, with a limit the flow cannot raise.

    Args:
        source: Configuration by source topic.
        remote: Configuration by remote topic; one that is missing is not checked.
        denied: Remote topics that the target did not let the flow alter, and why.

    Returns:
        The reason by source topic, with both limits and what helps.
    """
    return {
        route.source_topic: (
            f"{route.remote_topic} accepts messages of {there} bytes, {route.source_topic} of "
            f"{here}, and {_why(plan, sync, denied.get(route.remote_topic))}. Set "
            f"{LIMIT}={here} on {route.remote_topic}{_or(sync)}"
        )
        for route in plan.routes
        if sync.keeps(LIMIT) or route.remote_topic in denied
        for here, there in _limits(route, source, remote)
        if there < here
    }


def find_compacted_copies(
    plan: FlowPlan, sync: ConfigSync, *, source: Configs, remote: Configs
) -> tuple[str, ...]:
    """Return a sentence for each copy that stays compacted while its source topic is not."""
    return tuple(
        f"{plan.flow}: {route.remote_topic} is compacted and {route.source_topic} is not: the copy "
        f"loses older records of a key, and the target refuses records without one. Set "
        f"{POLICY}=delete on {route.remote_topic}, or exclude {route.source_topic}."
        for route in plan.routes
        if sync.keeps(POLICY)
        and COMPACT in remote.get(route.remote_topic, {}).get(POLICY, "")
        and COMPACT not in source.get(route.source_topic, {}).get(POLICY, "")
    )


def _limits(route: Route, source: Configs, remote: Configs) -> list[tuple[int, int]]:
    """Return the limits of the source topic and of its copy; nothing if one is unknown."""
    here = source.get(route.source_topic, {}).get(LIMIT)
    there = remote.get(route.remote_topic, {}).get(LIMIT)
    return [] if here is None or there is None else [(int(here), int(there))]


def _why(plan: FlowPlan, sync: ConfigSync, denied: str | None) -> str:
    if denied is not None:
        return f"{plan.flow.target} refuses to change that ({denied})"
    return f"{sync.filter_key} excludes {LIMIT}" if sync.excludes(LIMIT) else f"{SYNC_KEY} = false"


def _or(sync: ConfigSync) -> str:
    if sync.excludes(LIMIT):
        return ", or do not exclude it."
    return "." if sync.is_on else f", or {SYNC_KEY} = true."
