"""What a run takes from its file while it goes on: which topics, groups and entries it follows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from eos_mirror.driver.flow import FlowRunner
from eos_mirror.errors import ConfigError
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.load import load_settings
from eos_mirror.settings.model import FlowSettings, Settings

Lists = dict[str, Any]
"""By the name of the key."""


class ConfigReload:
    """Looks at the file again and again; everything else in it waits for the next start."""

    def __init__(
        self, settings: Settings, flows: Sequence[FlowRunner], *, on_event: EventSink
    ) -> None:
        """
        Args:
            on_event: Takes log events.
        """
        self._path = settings.path
        self._flows = flows
        self._on_event = on_event
        self._seen = self._stamp()

    def look(self) -> None:
        """Take what has changed. A file that cannot be read, or is wrong, changes nothing."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
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
        """Another one when the file was written again; None while there is none."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size


def lists_of(flow: FlowSettings) -> Lists:
    """What may change."""
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
    """The settings of a run with the lists of its file as it is now."""
    return replace(
        flow,
        topics=written.topics,
        topics_exclude=written.topics_exclude,
        config_exclude=written.config_exclude,
        filters=replace(written.filters, provenance=flow.filters.provenance),
        groups=replace(flow.groups, include=written.groups.include, exclude=written.groups.exclude),
    )
