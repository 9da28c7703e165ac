"""What `status` shows: the same text as before for scripts, and tables on a terminal."""

import json
import pickle
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from eos_mirror.cli import status, status_groups, status_watch
from eos_mirror.cli.main import main
from eos_mirror.cli.status_watch import seconds
from eos_mirror.cli.views import Answer
from eos_mirror.core.flow import Flow
from eos_mirror.core.states import State
from eos_mirror.errors import ConfigError, MirrorError
from eos_mirror.operate.status import FlowStatus
from tests.cli.pseudo_terminal import COLUMNS, PseudoTerminal
from tests.cli.statuses import (
    EVERYTHING,
    GROUPS,
    LEDGER,
    everything,
    flow,
    groups,
    ledger,
    partition,
)

RED, GREEN, MAGENTA = "\033[1;31m", "\033[32m", "\033[35m"
RESET = "\033[0m"
NOTHING_YET = ["nothing", "of", "it", "is", "mirrored", "yet"]
Show = Callable[..., int]


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Show:
    """Return a function that runs `status` for these flows, without clusters."""

    def run(*arguments: str, statuses: Sequence[FlowStatus] = ()) -> int:
        found = {one.flow: one for one in statuses or [everything()]}
        flows = [SimpleNamespace(flow=Flow(*name.split("->"))) for name in found]

        def settings_of(_: str) -> Any:
            return SimpleNamespace(flows=flows)

        def flow_status(one: Any, *, beside: object) -> FlowStatus:
            assert beside is not None
            return found[str(one.flow)]

        monkeypatch.setattr(status, "settings_of", settings_of)
        monkeypatch.setattr(status, "reach_clusters", lambda *_, **__: None)
        monkeypatch.setattr(status, "flow_status", flow_status)
        monkeypatch.setattr(status, "ledger_entries", lambda _: ledger())
        monkeypatch.setattr(status_groups, "group_statuses", lambda _: groups())
        return main(["status", "mm2.properties", *arguments])

    return run


def rows(text: str, *names: str) -> list[list[str]]:
    """Return the words of the lines that begin with one of these names, without colours."""
    for code in (RED, GREEN, MAGENTA, RESET, "\033[1m", "\033[33m", "\033[36m", "\033[2m"):
        text = text.replace(code, "")
    found = [one.split() for one in text.splitlines()]
    return [one for one in found if one and one[0] in names]


@pytest.mark.parametrize(
    "case",
    [([], EVERYTHING, 1), (["--groups"], GROUPS, 0), (["--ledger"], LEDGER, 0)],
    ids=["flows", "groups", "ledger"],
)
def test_a_script_reads_what_it_has_always_read(
    show: Show,
    capsys: pytest.CaptureFixture[str],
    screen: PseudoTerminal,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[list[str], str, int],
) -> None:
    """Without a terminal the text is byte for byte this one; so it is without rich."""
    option, expected, code = case
    assert show(*option) == code
    assert capsys.readouterr().out == expected

    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setattr(sys, "stdout", screen.stream)
    assert show(*option) == code
    assert screen.text() == expected


def test_a_flow_on_a_terminal_has_a_table_of_topics(
    show: Show, screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each topic is a row, and each state has its colour. What the lines say is not lost."""
    monkeypatch.setattr(sys, "stdout", screen.stream)

    assert show() == 1

    text = screen.text()
    assert text.startswith(f"A->B: {RED}failed{RESET}, exactly-once, 6 partitions, lag 160")
    assert rows(text, "orders", "payments", "users") == [
        ["orders", "2", "60", "2", "mirroring"],
        ["payments", "2", "100", "and", "unknown", "of", "1", "1", "failed,", "1", "waiting"],
        ["users", "2", "0", "1", "paused,", "1", "mirroring"],
    ]
    assert f"{GREEN}2 mirroring{RESET}" in text
    assert f"{MAGENTA}1 paused{RESET}" in text
    assert f"payments-0: {RED}failed{RESET} since 2026-11-27 10:14:02 UTC" in text
    table = ("  orders: ", "  payments: ", "  users: 2 ")
    words = [w for one in EVERYTHING.splitlines() if not one.startswith(table) for w in one.split()]
    shown = [word for one in rows(text, *text.split()) for word in one]
    assert [word for word in words if word not in shown] == []


def test_no_color_leaves_the_tables(
    show: Show, screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With NO_COLOR there are tables without any escape sequence."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", screen.stream)

    show()

    text = screen.text()
    assert "\033" not in text
    assert ["orders", "2", "60", "2", "mirroring"] in rows(text, "orders")
    assert all(len(one) <= COLUMNS for one in text.splitlines())


def test_several_flows_end_with_an_overview_on_a_terminal(
    show: Show,
    screen: PseudoTerminal,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The end is what a person sees first; scripts do not get it."""
    both = [flow(partition("a", 0)), flow(partition("b", 0, State.UNKNOWN, "why"), name="C->B")]
    assert show(statuses=both) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [one.split(":")[0] for one in lines] == [
        *["A->B", "  run", "  a"],
        *["C->B", "  run", "  b", "  b-0"],
    ]

    monkeypatch.setattr(sys, "stdout", screen.stream)
    show(statuses=both)

    text = screen.text()
    assert text.count("\n\n") == 2, "an empty line between the parts"
    assert rows(text, "flow", "A->B", "C->B") == [
        ["flow", "state", "mode", "partitions", "lag", "run"],
        ["A->B", "mirroring", "exactly-once", "1", "0", "mirror-1"],
        ["C->B", "unknown", "exactly-once", "1", "0", "mirror-1"],
    ]


def test_groups_and_the_ledger_are_tables_on_a_terminal(
    show: Show, screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row for each group and each entry, with the header of the lines above."""
    monkeypatch.setattr(sys, "stdout", screen.stream)

    show("--groups")
    show("--ledger")

    text = screen.text()
    assert text.startswith(GROUPS.splitlines()[0])
    assert f"{GREEN}in step{RESET}" in text
    assert rows(text, "audit", "lost", "reports") == [
        ["audit", "2", "1", "ahead", "of", "the", "mirror"],
        ["lost", "skipped", "its", "coordinator", "does", "not", "answer"],
        ["reports", "1", "1", "not", "translated", "orders-0:", *NOTHING_YET],
    ]
    assert LEDGER.splitlines()[0] in text
    assert f"{RED}stop{RESET}" in text
    assert "partition payments-0, cause RecordRefused" in text


def test_json_is_the_same_on_a_terminal(
    show: Show,
    screen: PseudoTerminal,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One object on one line, however wide the terminal is."""
    show("--json")
    expected = capsys.readouterr().out
    monkeypatch.setattr(sys, "stdout", screen.stream)

    show("--json")

    assert screen.text() == expected
    assert json.loads(expected)["flow"] == "A->B"


# ------------------------------------------------------------------ --watch


class FakeRepeated:
    """`Repeated` in the same process; a Ctrl-C comes in the place of the last answer."""

    def __init__(self, look: Callable[[], Sequence[Answer]], *ends: Exception | None) -> None:
        self._look, self._ends = look, list(ends)
        self.is_closed = False

    def __call__(self, _: timedelta) -> Sequence[Answer]:
        if not self._ends:
            raise KeyboardInterrupt
        end = self._ends.pop(0)
        if end is not None:
            raise end
        return self._look()

    def close(self) -> None:
        """See `Repeated`."""
        self.is_closed = True


@pytest.fixture
def repeat(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[FakeRepeated]]:
    """Return a function that sets how each look ends: with an error, or with None in time."""

    def set_ends(*ends: Exception | None) -> list[FakeRepeated]:
        made: list[FakeRepeated] = []

        def make(look: Callable[[], Sequence[Answer]]) -> FakeRepeated:
            made.append(FakeRepeated(look, *ends))
            return made[-1]

        monkeypatch.setattr(status_watch, "Repeated", make)
        monkeypatch.setattr(time, "sleep", lambda _: None)
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        return made

    return set_ends


Repeat = Callable[..., list[FakeRepeated]]


def test_a_watch_without_a_terminal_prints_the_text_again(
    show: Show, repeat: Repeat, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each text follows a line with the time; the exit code is that of the last one."""
    made = repeat(None, None)

    assert show("--watch", "2") == 1

    text = capsys.readouterr().out
    headers = [one for one in text.splitlines() if "UTC: " in one]
    assert text == "".join(f"{one}\n{EVERYTHING}" for one in headers)
    assert [one.partition("UTC: ")[2] for one in headers] == [
        "eos-mirror status mm2.properties, every 2 s"
    ] * 2
    assert [one.is_closed for one in made] == [True]


def test_a_watch_on_a_terminal_refreshes_the_view(
    show: Show, repeat: Repeat, screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each view takes the place of the one before, and the last one remains."""
    repeat(None, None)
    monkeypatch.setattr(sys, "stdout", screen.stream)

    assert show("--watch", statuses=[flow(partition("orders", 0))]) == 0

    first, second, last = (part.count("mirroring") for part in screen.text().split("\033[J"))
    assert (first, second, last) == (2, 2, 2)


def test_a_watch_of_several_flows_begins_with_the_overview(
    show: Show, repeat: Repeat, screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a view may not fit on the screen."""
    repeat(None)
    monkeypatch.setattr(sys, "stdout", screen.stream)

    show("--watch", statuses=[flow(partition("a", 0)), flow(partition("b", 0), name="C->B")])

    names = [one[0] for one in rows(screen.text(), "flow", "A->B", "A->B:", "C->B", "C->B:")]
    assert names == ["flow", "A->B", "C->B", "A->B:", "C->B:"] * 2


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_watch_survives_a_failure(
    show: Show, repeat: Repeat, capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    """A cluster may be down for a while. What is no status goes to stderr."""
    repeat(None, MirrorError("no answer"), None)

    assert show("--watch", "2", *option, statuses=[flow(partition("orders", 0))]) == 0

    said = capsys.readouterr()
    assert said.out.count("A->B") == 2
    assert said.err == "eos-mirror: cannot read the status, trying again: no answer\n"


def test_a_watch_on_a_terminal_shows_a_failure_in_the_view(
    show: Show, repeat: Repeat, screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is that of the error, if it was the last view."""
    repeat(None, ConfigError("no answer"))
    monkeypatch.setattr(sys, "stdout", screen.stream)

    assert show("--watch") == 2

    last = screen.text().rpartition("\033[?1049l")[2]
    assert f"{RED}cannot read the status, trying again: no answer{RESET}" in last
    assert "A->B" not in last


def test_a_watch_whose_first_look_fails_exits_as_without_it(
    show: Show, repeat: Repeat, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong from the start does not pass."""
    repeat(ConfigError("B does not answer"))

    assert show("--watch") == 2
    assert capsys.readouterr().err == "eos-mirror: B does not answer\n"


def test_a_watch_of_json_prints_nothing_else(
    show: Show, repeat: Repeat, screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line is an object, also on a terminal."""
    repeat(None, None)
    monkeypatch.setattr(sys, "stdout", screen.stream)

    show("--watch", "--json")

    assert [json.loads(one)["flow"] for one in screen.text().splitlines()] == ["A->B"] * 2


@pytest.mark.parametrize("text", ["A->B", "0", "-1", "nan", "inf"])
def test_an_interval_that_makes_no_sense_is_refused(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line is wrong: exit code 2."""
    with pytest.raises(SystemExit) as ended:
        main(["status", "mm2.properties", f"--watch={text}"])

    assert ended.value.code == 2
    assert "--watch" in capsys.readouterr().err
    assert seconds("1.5") == 1.5


def test_what_a_watch_sends_between_processes_arrives_as_it_is() -> None:
    """The look goes to a child process, and the views come back."""
    args = Namespace(file="f", flow=None, ledger=False, groups=False, json=False, watch=1.0)
    views = [Answer(view=list(status._as_text(everything())), code=1)]  # noqa: SLF001

    look = pickle.loads(pickle.dumps(partial(status._answers, args)))  # noqa: S301, SLF001

    assert look.args == (args,)
    assert pickle.loads(pickle.dumps(views)) == views  # noqa: S301
