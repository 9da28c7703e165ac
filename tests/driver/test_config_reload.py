"""The configuration of a running driver: filters are applied when they change, nothing else is."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from eos_mirror.core.flow import Flow
from eos_mirror.driver.config_reload import ConfigReload
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.settings.model import FlowSettings
from tests.driver.fakes import FLOW, Events, settings_of, write_config


@dataclass
class FakeRunner:
    """What a reload uses of a `FlowRunner`."""

    settings: FlowSettings
    taken: list[FlowSettings] = field(default_factory=list)

    @property
    def flow(self) -> Flow:
        """See `FlowRunner`."""
        return self.settings.flow

    def take(self, settings: FlowSettings) -> None:
        """See `FlowRunner`."""
        self.settings = settings
        self.taken.append(settings)


class Stage:
    """A running flow A->B, and its configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        settings = settings_of(folder)
        self.events, self.runner = Events(), FakeRunner(settings.flows[0])
        flows = [cast("FlowRunner", self.runner)]
        self.reload = ConfigReload(settings, flows, on_event=self.events)

    def write(self, **keys: str) -> None:
        """Replace the configuration and check it; a key has `_` for `.`."""
        write_config(self.folder, {key.replace("_", "."): value for key, value in keys.items()})
        self.reload.look()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """The configuration is as it was at the start."""
    return Stage(tmp_path)


def test_an_unchanged_configuration_changes_nothing(stage: Stage) -> None:
    """Nor does a line that means the same, such as a filter with its default."""
    stage.reload.look()
    stage.write(topics=".*")

    assert (stage.runner.taken, stage.events) == ([], [])


def test_filters_are_applied_when_they_change(stage: Stage) -> None:
    """Topics, groups and entries, together; the event names the keys that changed."""
    stage.write(
        topics="orders", groups_exclude="x", config_properties_exclude="y", topics_exclude="z"
    )
    stage.reload.look()

    (taken,) = stage.runner.taken
    assert [pattern.pattern for pattern in taken.topics] == ["orders"]
    assert [pattern.pattern for pattern in taken.groups.exclude] == ["x"]
    assert [pattern.pattern for pattern in taken.config_exclude] == ["y"]
    assert [pattern.pattern for pattern in taken.topics_exclude] == ["z"]
    (event,) = stage.events.of("config.reloaded")
    assert event["flow"] == str(FLOW)
    assert set(event["keys"]) == {
        "topics",
        "topics.exclude",
        "groups.exclude",
        "config.properties.exclude",
    }


def test_a_change_between_the_start_and_the_first_check_is_applied(tmp_path: Path) -> None:
    """A run that stands by for hours leads with the filters of the file as it is then."""
    settings = settings_of(tmp_path)
    runner = FakeRunner(settings.flows[0])
    write_config(tmp_path, {"topics": "orders"})
    flows = [cast("FlowRunner", runner)]

    ConfigReload(settings, flows, on_event=Events()).look()

    assert [taken.topics for taken in runner.taken] != []


def test_other_keys_keep_their_values_until_the_next_start(stage: Stage) -> None:
    """Even if they change together with a filter: a running flow cannot change its mode."""
    before = stage.runner.settings
    stage.write(tasks_max="5")
    assert stage.runner.taken == []

    stage.write(
        tasks_max="5",
        topics="orders",
        transaction_producer="false",
        provenance_headers_enabled="true",
        emit_checkpoints_enabled="false",
    )

    now = stage.runner.settings
    assert [pattern.pattern for pattern in now.topics] == ["orders"]
    assert (now.tasks_max, now.exactly_once) == (before.tasks_max, True)
    assert not now.filters.provenance
    assert now.groups.emit_checkpoints


def test_an_invalid_configuration_changes_nothing_and_is_reported_once(
    stage: Stage, tmp_path: Path
) -> None:
    """The next valid one is applied."""
    stage.write(topics="(")
    stage.reload.look()
    (event,) = stage.events
    assert event[0] == "config.invalid"
    assert re.match(rf"{re.escape(str(tmp_path))}.*:\d+: ", event[1]["reason"])
    assert stage.runner.taken == []

    stage.write(topics="users")
    assert len(stage.runner.taken) == 1
    assert stage.events.names == ["config.invalid", "config.repaired", "config.reloaded"]


def test_a_configuration_that_is_missing_is_read_when_it_is_back(
    stage: Stage, tmp_path: Path
) -> None:
    """Some editors replace the file in two steps."""
    (tmp_path / "mm2.properties").unlink()
    for _ in range(2):
        stage.reload.look()
    assert stage.events.names == ["config.invalid"]

    stage.write(topics="users")
    assert stage.events.names == ["config.invalid", "config.repaired", "config.reloaded"]


def test_a_flow_that_is_no_longer_enabled_keeps_its_filters(stage: Stage) -> None:
    """Flows are started and stopped with the driver only."""
    write_config(
        stage.folder, {"A->B.enabled": "false", "B->A.enabled": "true", "topics": "orders"}
    )
    stage.reload.look()

    assert (stage.runner.taken, stage.events) == ([], [])


def test_keys_that_wait_for_a_restart_are_reported_once(stage: Stage) -> None:
    """Again if there are others, or if an operator asks. Client settings go by their prefix."""
    stage.write(tasks_max="7")
    stage.write(tasks_max="8")
    assert stage.events.of("config.pending") == [{"flow": str(FLOW), "keys": ["tasks.max"]}]

    stage.write(tasks_max="8", consumer_fetch_min_bytes="2")
    assert stage.events.of("config.pending")[-1]["keys"] == ["source.consumer.*", "tasks.max"]
    stage.write()
    stage.write(tasks_max="7")
    assert len(stage.events.of("config.pending")) == 3


def test_a_check_that_was_asked_for_always_answers(stage: Stage) -> None:
    """The operator who sends SIGHUP sees that it arrived, even if nothing changed."""
    stage.reload.look()
    stage.reload.ask()
    asked = [stage.reload.is_asked]
    stage.reload.look()
    stage.reload.look()
    asked.append(stage.reload.is_asked)

    assert asked == [True, False]
    assert stage.events.of("config.reloaded") == [{"flow": str(FLOW), "keys": []}]
