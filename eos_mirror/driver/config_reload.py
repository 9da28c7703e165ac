"""Applies configuration changes to a running driver: filters of topics, groups and entries."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from eos_mirror.driver.flow import FlowRunner
from eos_mirror.errors import ConfigError
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.connect import PREFIXES
from eos_mirror.settings.keys import values_of
from eos_mirror.settings.load import load_settings
from eos_mirror.settings.model import FlowSettings, Settings

Lists = dict[str, Any]
"""Filter values by configuration key."""


class ConfigReload:
    """
    Checks the configuration file periodically, and when it is asked to.

    Changes of other keys are reported, and applied at the next start.
    """

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
        self._asked = self._answered = 0
        self._is_invalid = False
        self._seen: tuple[int, int] | None = None
        self._pending = {runner.flow: list[str]() for runner in flows}

    def ask(self) -> None:
        """Make the next check read the file and report, even if nothing changed. For any thread."""
        self._asked += 1

    @property
    def is_asked(self) -> bool:
        """True until everything that was asked for has been answered."""
        return self._answered < self._asked

    def look(self) -> None:
        """
        Apply what has changed. An unreadable or invalid file changes nothing.

        The first check reads the file in any case: it may have changed since the start, while this
        run waited to lead.
        """
        stamp, asked = self._stamp(), self._asked
        is_asked = asked > self._answered
        if stamp != self._seen or self._is_first or is_asked:
            self._seen, self._is_first = stamp, False
            self._read(is_asked=is_asked)
        self._answered = asked

    def _read(self, *, is_asked: bool) -> None:
        try:
            written = {flow.flow: flow for flow in load_settings(self._path).flows}
        except ConfigError as exc:
            self._is_invalid = True
            self._on_event("config.invalid", {"reason": str(exc).splitlines()[0]})
            return
        if self._is_invalid:
            self._is_invalid = False
            self._on_event("config.repaired", {"file": str(self._path)})
        for runner in self._flows:
            flow = written.get(runner.flow)
            if flow is not None:
                self._take(runner, flow, is_asked=is_asked)
                self._report_pending(runner, flow, is_asked=is_asked)

    def _take(self, runner: FlowRunner, flow: FlowSettings, *, is_asked: bool) -> None:
        before, now = lists_of(runner.settings), lists_of(flow)
        changed = [key for key in now if now[key] != before[key]]
        if changed:
            runner.take(with_lists(runner.settings, flow))
        if changed or is_asked:
            self._on_event("config.reloaded", {"flow": str(runner.flow), "keys": changed})

    def _report_pending(self, runner: FlowRunner, flow: FlowSettings, *, is_asked: bool) -> None:
        """Report keys that wait for a restart: when there are others than before, or if asked."""
        pending = sorted(changed_keys(runner.settings, flow))
        if pending and (is_asked or pending != self._pending[runner.flow]):
            self._on_event("config.pending", {"flow": str(runner.flow), "keys": pending})
        self._pending[runner.flow] = pending

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


def changed_keys(running: FlowSettings, written: FlowSettings) -> set[str]:
    """Return the keys of a flow whose values differ; client settings by their prefix."""
    both = zip(values_of(running), values_of(written), strict=True)
    changed = {row.name for (row, before), (_, now) in both if before != now}
    return changed | {
        f"{prefix}*"
        for role, prefix in PREFIXES.items()
        if getattr(running.clients, role) != getattr(written.clients, role)
    }
