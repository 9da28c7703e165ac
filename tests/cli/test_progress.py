"""The progress of `verify`, `bench` and `run`: a bar on a terminal, and what it was elsewhere."""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eos_mirror.cli import bench, run_progress, verify
from eos_mirror.cli.run_progress import first_catch_up_shown
from eos_mirror.cli.terminal import bar
from eos_mirror.cli.verify import ProgressLines
from eos_mirror.driver.driver import Driver
from eos_mirror.errors import NotAuthorized
from eos_mirror.operate.bench import Load
from eos_mirror.operate.proven_file import ProvenFile
from eos_mirror.operate.verify import Planned
from eos_mirror.settings.model import FlowSettings, Settings
from tests.cli.pseudo_terminal import PseudoTerminal

PLANNED = Planned(
    topics_count=1, offsets_count=2_000, size_bytes=2e9, tasks_count=3, slots=2, minutes=0.2
)
PLAN = "A->B: 1 topic, 2000 offsets, about 2 GB on both sides together: 3 tasks on 2 slots, "
PLAN += "less than a minute\n"


def proof() -> None:
    """Run a proof of three tasks."""
    with bar() as shown:
        progress = ProgressLines("A->B", ProvenFile(None), lambda: None, shown)
        progress.planned(PLANNED)
        for _ in range(PLANNED.tasks_count):
            progress.done()


def test_a_proof_without_a_terminal_prints_the_lines_it_printed_before(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan, and a line now and then; the last one always."""
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)

    proof()

    assert capsys.readouterr().err == PLAN + "A->B: 3 of 3 tasks, 0 s left\n"


@pytest.mark.parametrize(
    ("size", "minutes", "text"),
    [
        (900, 0.01, "about 900 bytes on both sides together: 3 tasks on 2 slots, less than a"),
        (41_300, 1.2, "about 41.3 kB on both sides together: 3 tasks on 2 slots, about 1 min"),
        (5.25e6, 0.4, "about 5.25 MB on both sides together: 3 tasks on 2 slots, less than a"),
        (4.2e12, 700, "about 4,200 GB on both sides together: 3 tasks on 2 slots, about 700 min"),
    ],
)
def test_a_plan_has_units_that_suit_its_size(
    capsys: pytest.CaptureFixture[str], size: float, minutes: float, text: str
) -> None:
    """1e-05 GB says little."""
    planned = replace(PLANNED, size_bytes=size, minutes=minutes)

    ProgressLines("A->B", ProvenFile(None), lambda: None, None).planned(planned)

    assert text in capsys.readouterr().err


@pytest.mark.parametrize("with_rich", [True, False])
def test_a_proof_on_a_terminal_has_one_line_that_changes(
    screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch, with_rich: bool
) -> None:
    """With rich it is a bar."""
    monkeypatch.setattr(sys, "stderr", screen.stream)
    if not with_rich:
        monkeypatch.setitem(sys.modules, "rich", None)
        monkeypatch.setattr(verify, "SHOWN_EVERY_S", 0.0)

    proof()

    text = screen.text()
    assert text.startswith(PLAN)
    assert ("━" in text) == with_rich
    assert ("2 of 3 tasks, " in text) != with_rich
    assert "2 of 3 tasks" in text


# ------------------------------------------------------------------ bench


class FakeBench:
    """`Bench` without clusters."""

    def __init__(self, *_: object, **arguments: Any) -> None:
        self.tell, self.on_progress = arguments["tell"], arguments["on_progress"]

    def run(self, _: object) -> str:
        """Fill and copy."""
        for done in (1_000, 5_000, 10_000):
            self.on_progress("filling", done)
        self.on_progress("tasks: 1", 2_000)
        self.tell("tasks: 1: 5,000 records/s")
        return "findings"


def measure(monkeypatch: pytest.MonkeyPatch) -> object:
    """Run it, as the verb does."""
    monkeypatch.setattr(bench, "Bench", FakeBench)
    load = Load(records=10_000, value_bytes=100, partitions=1, rate=1_000)
    settings = cast("Settings", None)
    return bench._measured(settings, cast("FlowSettings", None), load, [1])  # noqa: SLF001


def test_a_bench_without_a_terminal_prints_its_lines_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are the lines of before."""
    assert measure(monkeypatch) == "findings"
    assert capsys.readouterr().err == "eos-mirror: tasks: 1: 5,000 records/s\n"


def test_a_bench_on_a_terminal_has_a_bar_for_each_step(
    screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One at a time, with the lines above."""
    monkeypatch.setattr(sys, "stderr", screen.stream)

    measure(monkeypatch)

    text = screen.text()
    steps = ["1,000 of 10,000 records", "2,000 of 10,000 records", "tasks: 1: 5,000 records/s\n"]
    assert [one for one in steps if one not in text] == []
    assert text.count("\033[?25l") == text.count("\033[?25h") == 2


# ------------------------------------------------------------------ run


class FakeCatchUp:
    """`FirstCatchUp` that gets on by 40 of 100 offsets at each look."""

    def __init__(self, _: object) -> None:
        self.done = self.total = 0
        self.is_over = False
        self.looks = 0

    def look(self) -> None:
        """See `FirstCatchUp`."""
        self.done, self.total = self.looks * 40, 100
        self.looks += 1
        self.is_over = self.done >= self.total


class FakeRefusal(FakeCatchUp):
    """One whose clusters do not answer."""

    def look(self) -> None:
        """See `FirstCatchUp`."""
        raise NotAuthorized("DESCRIBE on topic orders")


@pytest.fixture
def catch_up(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that shows a catch-up until its thread has ended."""

    def show(kind: type[FakeCatchUp], *, is_stopped: bool = False) -> None:
        monkeypatch.setattr(run_progress, "FirstCatchUp", kind)
        monkeypatch.setattr(run_progress, "LOOK_EVERY_S", 0.3)
        driver = SimpleNamespace(flows=[], readiness=SimpleNamespace(is_settled=True))
        stop = threading.Event()
        if is_stopped:
            stop.set()
        with first_catch_up_shown(cast("Driver", driver), stop):
            for thread in threading.enumerate():
                if thread.name == "progress":
                    thread.join(30)

    return show


def test_the_first_catch_up_of_a_run_has_a_bar_that_disappears(
    screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch, catch_up: Callable[..., None]
) -> None:
    """From the second look on: a flow that lags little needs none."""
    monkeypatch.setattr(sys, "stderr", screen.stream)

    catch_up(FakeCatchUp)

    text = screen.text()
    assert "40 of 100 offsets" in text
    assert "0 of 100 offsets" not in text.replace("40 of", "").replace("80 of", "")
    assert text.count("\033[?25l") == text.count("\033[?25h") == 1


@pytest.mark.parametrize(
    ("kind", "is_stopped"), [(FakeRefusal, False), (FakeCatchUp, True)], ids=["refused", "stopped"]
)
def test_a_catch_up_that_cannot_be_watched_is_not(
    screen: PseudoTerminal,
    monkeypatch: pytest.MonkeyPatch,
    catch_up: Callable[..., None],
    kind: type[FakeCatchUp],
    is_stopped: bool,
) -> None:
    """A missing right, or a stop, ends the bar and nothing else."""
    monkeypatch.setattr(sys, "stderr", screen.stream)

    catch_up(kind, is_stopped=is_stopped)

    assert screen.text() == ""


def test_a_run_without_a_terminal_measures_nothing(
    capsys: pytest.CaptureFixture[str], catch_up: Callable[..., None]
) -> None:
    """Its clusters get no request more than before."""
    catch_up(FakeRefusal)

    assert capsys.readouterr() == ("", "")
    assert "progress" not in {thread.name for thread in threading.enumerate()}
