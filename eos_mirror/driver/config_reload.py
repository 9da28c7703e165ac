"""Applies configuration changes to a running driver: filters of topics, groups and entries."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from eos_mirror.driver.flow import FlowRunner
from eos_mirror.errors import ConfigError
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.load import load_settings
from eos_mirror.settings.model import FlowSettings, Settings

Lists = dict[str, Any]
"""Filter values by configuration key."""


class ConfigReload:
    """Checks the configuration file periodically. Other keys are applied at the next start."""

    def __init__(
        self, settings: Settings, flows: Sequence[FlowRunner], *, on_event: EventSink
    ) -> None:
        """
        Args:
            on_event: Receives log events.
        """
        self._path = settings.path
        self._flows = flows
        self._on_event = on_event
        self._is_first = True
        self._seen: tuple[int, int] | None = None

    def look(self) -> None:
        """
        Apply what has changed. An unreadable or invalid file changes nothing.

        The first check reads the file in any case: it may have changed since the start, while this
        run waited to lead.
        """
        stamp = self._stamp()
        if stamp == self._seen and not self._is_first:
            return
        self._seen, self._is_first = stamp, False
        try:
            written = {flow.flow: flow for flow in load_settings(self._path).flows}
        except ConfigError as exc:
            self._on_event("config.invalid", {"reason": str(exc).splitlines()[0]})
            return
        for runner in self._flows:
            flow = written.get(runner.flow)
            if flow is not None:
                self._take(runner, flow)

    def _take(self, runner: FlowRunner, flow: FlowSettings) -> None:
        before, now = lists_of(runner.settings), lists_of(flow)
        changed = [key for key in now if now[key] != before[key]]
        if changed:
            runner.take(with_lists(runner.settings, flow))
            self._on_event("config.reloaded", {"flow": str(runner.flow), "keys": changed})

    def _stamp(self) -> tuple[int, int] | None:
        """Return a value that changes when the file is written; None while there is no file."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size


def lists_of(flow: FlowSettings) -> Lists:
    """Return the values that may change during a run."""
    return {
        "topics": flow.topics,
        "topics.exclude": flow.topics_exclude,
        "topic.filter.class": flow.filters.topic_class,
        "groups": flow.groups.include,
        "groups.exclude": flow.groups.exclude,
        "group.filter.class": flow.filters.group_class,
        "config.properties.exclude": flow.config_exclude,
        "config.property.filter.class": flow.filters.config_class,
    }


def with_lists(flow: FlowSettings, written: FlowSettings) -> FlowSettings:
    """Return the settings of a run with the filters of the current configuration."""
    return replace(
        flow,
        topics=written.topics,
        topics_exclude=written.topics_exclude,
        config_exclude=written.config_exclude,
        filters=replace(written.filters, provenance=flow.filters.provenance),
        groups=replace(flow.groups, include=written.groups.include, exclude=written.groups.exclude),
    )
