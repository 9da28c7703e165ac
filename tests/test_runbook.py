"""The runbook has an entry for everything that asks for a person, and names nothing else."""

import inspect
import re
from pathlib import Path

import pytest

from eos_mirror import errors
from eos_mirror.core.states import State
from eos_mirror.errors import FatalError, MirrorError, PartitionStopped, RestartTask
from eos_mirror.telemetry.events import EVENTS, Level
from eos_mirror.telemetry.metrics import METRICS

PAGE = Path(__file__).parent.parent / "docs" / "runbook.md"
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FIRST_CELL = re.compile(r"^\|((?:[^|`]|`[^`]*`)+)\|", re.MULTILINE)
CODE_BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
DOTTED = re.compile(r"[\w-]+(?:\.[\w-]+)+")
CLASS = re.compile(r"(?:[A-Z][a-z]+){2,}")

CLASSES = {
    name: value
    for name, value in inspect.getmembers(errors, inspect.isclass)
    if issubclass(value, MirrorError)
}
ASKING = frozenset(event.name for event in EVENTS if event.level in {Level.WARNING, Level.ERROR})
CAUSES = frozenset(
    name
    for name, value in CLASSES.items()
    if issubclass(value, (PartitionStopped, RestartTask, FatalError))
)
"""What stops a partition or a process of a task, as the field `cause` names it."""


def prose() -> str:
    """Return the page without its code blocks: a comment in a command is no heading."""
    return CODE_BLOCK.sub("", PAGE.read_text(encoding="utf-8"))


def keys() -> set[str]:
    """Return the code in headings and in the first cells of table rows."""
    text = prose()
    places = [*HEADING.findall(text), *FIRST_CELL.findall(text)]
    return {word for place in places for word in re.findall(r"`([^`]+)`", place)}


@pytest.mark.parametrize("name", sorted(ASKING))
def test_every_warning_and_error_has_an_entry(name: str) -> None:
    """An event that asks for a person has a heading of its own."""
    assert f"### `{name}`" in prose().splitlines()


@pytest.mark.parametrize("name", sorted(CAUSES))
def test_every_cause_has_an_entry(name: str) -> None:
    """A cause that stops a partition, a task or a flow has a heading of its own."""
    assert f"### `{name}`" in prose().splitlines()


def test_every_state_has_a_row() -> None:
    """Every state that `status` prints is the key of a row."""
    assert {state.value for state in State} <= keys()


def test_no_entry_is_about_something_that_does_not_exist() -> None:
    """A key that is written like an event, a metric or an error is one."""
    events, metrics = {event.name for event in EVENTS}, {metric.name for metric in METRICS}
    dotted = {key for key in keys() if DOTTED.fullmatch(key)}
    classes = {key for key in keys() if CLASS.fullmatch(key)}

    assert dotted <= events | metrics
    assert classes <= CLASSES.keys()
    assert dotted & metrics, "no metric was found: the keys are read wrongly"


def entries() -> dict[str, str]:
    """Return the text under each heading of the third level, by heading."""
    parts = re.split(r"^#{2,3} (.+)$", prose(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", sorted(ASKING | CAUSES))
def test_every_entry_says_how_the_repair_shows(name: str) -> None:
    """A person sees when the trouble is over."""
    assert re.search(r"^Repaired: .+", entries()[f"`{name}`"], re.MULTILINE)
