"""Tables, colours and the progress bar: on a terminal only, and only with rich."""

import io
import subprocess
import sys
from datetime import timedelta

import pytest

from eos_mirror.cli.terminal import Bar, bar, is_drawn, lines_of, painter, refreshed
from eos_mirror.cli.views import Piece, Row, Tone, View, line, plain
from eos_mirror.testing import wait_until
from tests.cli.pseudo_terminal import COLUMNS, LINES, PseudoTerminal

ESCAPE = "\033"
RED = "\033[1;31m"
HIDDEN, SHOWN = "\033[?25l", "\033[?25h"
"""The cursor."""

ERASED = "\033[1A\033[2K"
"""The line above is empty."""

VIEW: View = [
    line("A->B: ", Piece("failed", Tone.BAD), ", lag 7"),
    Row(
        line="  orders: 2 partitions",
        cells={"topic": line("orders"), "partitions": line("2")},
        numbers=["partitions"],
    ),
    "  a plain line",
    Row(line=None, cells={"topic": line("users"), "partitions": line("1,000")}),
]
PLAIN = ["A->B: failed, lag 7", "  orders: 2 partitions", "  a plain line"]


def test_a_view_without_a_terminal_is_its_lines() -> None:
    """Scripts read what they have always read."""
    assert lines_of(VIEW, io.StringIO()) == list(plain(VIEW)) == PLAIN


def test_a_view_on_a_terminal_has_one_table_and_colours(screen: PseudoTerminal) -> None:
    """The rows form a table in the place of the first one, and other lines stay lines."""
    header, *table, last = lines_of(VIEW, screen.stream)

    assert header == f"A->B: {RED}failed\033[0m, lag 7"
    assert [one.split() for one in table if "orders" in one or "users" in one] == [
        ["orders", "2"],
        ["users", "1,000"],
    ]
    assert "topic" in table[0]
    assert "orders: 2 partitions" not in "".join(table)
    assert last == "  a plain line"


@pytest.mark.parametrize("why", ["NO_COLOR", "without rich", "TERM=dumb"])
def test_a_terminal_gets_no_colour_if_it_must_not(
    screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """With NO_COLOR there is still a table; without rich, or on a dumb terminal, plain text."""
    if why == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    elif why == "TERM=dumb":
        monkeypatch.setenv("TERM", "dumb")
    else:
        monkeypatch.setitem(sys.modules, "rich", None)

    found = lines_of(VIEW, screen.stream)

    assert ESCAPE not in "".join(found)
    assert painter(screen.stream)("text", Tone.BAD) == "text"
    assert (found == PLAIN) == (why != "NO_COLOR")
    assert is_drawn(screen.stream) == (why == "NO_COLOR")


def test_an_empty_no_color_counts_as_none(
    screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As https://no-color.org says."""
    monkeypatch.setenv("NO_COLOR", "")

    assert RED in lines_of(VIEW, screen.stream)[0]


def test_nothing_of_a_long_text_is_lost(screen: PseudoTerminal) -> None:
    """A line that is too long continues under its beginning, and a name that is too long, too."""
    name = "x" * (COLUMNS + 20)

    words = lines_of(["  " + "word " * 40], screen.stream)
    cells = lines_of([Row(line="", cells={"topic": line(name)})], screen.stream)

    assert len(words) > 1
    assert all(one.startswith("  word") and len(one) <= COLUMNS for one in words)
    assert "".join(words).split() == ["word"] * 40
    assert "".join(cells).count("x") == len(name)


def test_a_program_without_a_terminal_does_not_import_rich() -> None:
    """Rich costs a tenth of a second at the start."""
    script = "import sys, io, eos_mirror.cli.status as s, eos_mirror.cli.run, eos_mirror.cli.verify"
    use = "s.lines_of(['x'], io.StringIO()); print([n for n in sys.modules if n[:4] == 'rich'])"

    done = subprocess.run(
        [sys.executable, "-c", f"{script}\n{use}"], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"


# ------------------------------------------------------------------ a view that is refreshed


def test_a_view_is_refreshed_in_its_place_and_the_last_one_stays(screen: PseudoTerminal) -> None:
    """The alternate screen has one view at a time; afterwards the last one is on the terminal."""
    with refreshed(screen.stream) as show:
        show(["first", "second"])
        show(["third"])

    assert screen.text() == (
        "\033[?1049h\033[?25l\033[Hfirst\033[K\nsecond\033[K\n\033[J"
        "\033[Hthird\033[K\n\033[J"
        "\033[?25h\033[?1049lthird\n"
    )


def test_a_view_that_is_too_long_for_the_screen_is_cut(screen: PseudoTerminal) -> None:
    """The screen must not scroll, or the next view would not be in the same place."""
    lines = [f"line {number}" for number in range(LINES)]
    with refreshed(screen.stream) as show:
        show(lines)
        shown = screen
        shown.wait_for("\033[J")
        while_it_runs = screen.so_far()

    assert while_it_runs.count("\n") == LINES - 1
    assert f"line {LINES - 3}\033[K\n... and 2 more lines" in while_it_runs
    assert screen.text().endswith("".join(f"{one}\n" for one in lines))


@pytest.mark.parametrize("as_data", [True, False])
def test_views_without_a_terminal_follow_each_other(as_data: bool) -> None:
    """There is no escape sequence: a program reads it, or a file keeps it."""
    stream = io.StringIO()
    with refreshed(stream, as_data=as_data) as show:
        show(["first"])
        show(["second"])

    assert stream.getvalue() == "first\nsecond\n"


# ------------------------------------------------------------------ the progress bar


def test_a_bar_is_there_until_it_is_full(
    screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what is done and how much; it leaves no line, and gives the cursor back."""
    monkeypatch.setattr(sys, "stderr", screen.stream)
    with bar() as shown:
        assert shown is not None
        shown.show("A->B", done=1, total=4_000, unit="tasks")
        screen.wait_for("1 of 4,000 tasks")
        shown.show("A->B", done=4_000, total=4_000, unit="tasks")
        screen.wait_for(SHOWN)
        assert sys.stderr is screen.stream

    text = screen.text()
    assert text.index(HIDDEN) < text.index("A->B") < text.rindex(SHOWN)
    assert text.endswith(ERASED)


def test_a_bar_is_closed_when_the_block_fails(
    screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error must not leave a terminal without a cursor; later calls show nothing."""
    monkeypatch.setattr(sys, "stderr", screen.stream)
    kept: list[Bar] = []

    def fail() -> None:
        with bar() as shown:
            assert shown is not None
            kept.append(shown)
            shown.show("A->B", done=1, total=4, unit="tasks")
            raise ValueError("what happened")

    with pytest.raises(ValueError, match="what happened"):
        fail()
    kept[0].show("later", done=1, total=4, unit="tasks")

    text = screen.text()
    assert text.count(HIDDEN) == text.count(SHOWN) == 1
    assert "later" not in text


def test_lines_are_printed_above_the_bar(
    screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line to stdout or stderr is whole, and the bar is drawn again below it."""
    monkeypatch.setattr(sys, "stdout", screen.stream)
    monkeypatch.setattr(sys, "stderr", screen.stream)
    with bar() as shown:
        assert shown is not None
        shown.show("A->B", done=1, total=4, unit="tasks")
        sys.stdout.write("a line\n")
        sys.stderr.write("an error\n")
        wait_until(
            lambda: "1 of 4 tasks" in screen.so_far().rpartition("an error")[2],
            within=timedelta(seconds=10),
            what="the bar below the lines",
        )

    lines = [one.rpartition("\033[2K")[2] for one in screen.text().split("\n")]
    assert "a line" in lines
    assert "an error" in lines


def test_a_bar_leaves_data_on_stdout_alone(
    screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If stdout is a file, what is printed while the bar is there goes into the file."""
    monkeypatch.setattr(sys, "stderr", screen.stream)
    with bar() as shown:
        assert shown is not None
        shown.show("A->B", done=1, total=4, unit="tasks")
        sys.stdout.write("data\n")

    assert capsys.readouterr().out == "data\n"
    assert "data" not in screen.text()


@pytest.mark.parametrize("why", ["no terminal", "without rich"])
def test_there_is_no_bar_where_nothing_is_drawn(
    screen: PseudoTerminal, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """The verbs then print what they printed before."""
    monkeypatch.setattr(sys, "stderr", io.StringIO() if why == "no terminal" else screen.stream)
    if why == "without rich":
        monkeypatch.setitem(sys.modules, "rich", None)

    with bar() as shown:
        assert shown is None
