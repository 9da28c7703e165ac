"""The end of the demo: table, verdict and exit code, and the error if the demo cannot run."""

import dataclasses
import io
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.cli.main import main
from eos_mirror.demo import acts
from eos_mirror.demo.crash import transaction_states
from eos_mirror.demo.mirror_run import best_rate
from eos_mirror.demo.outcome import Outcome
from eos_mirror.demo.proof import Proof, by_partition, compare
from eos_mirror.demo.source import Written
from eos_mirror.demo.story import Story
from eos_mirror.testing import NotInstalled, wait_until

LINE = "CreateTime:1\tPartition:0\tNO_HEADERS\tk\tv\n"
EXACT = compare(by_partition(LINE), by_partition(LINE))
GOOD = Outcome(
    written=Written(committed=Counter({0: 1}), aborted=7, commits=2, aborts=1),
    proof=Proof(comparison=EXACT, written={0: 1}, read={0: 1}),
    transactions=3,
    killed=1,
    fenced=3,
    slow_commits=2,
    best_rate=12345.6,
    mirrored_s=0.5,
    exit_code=0,
)


def test_the_table_has_a_line_for_everything_that_counts() -> None:
    """The table has a row for every figure, with thousands separators."""
    rows = dict(line.split("  ", 1) for line in GOOD.table().splitlines())

    assert rows["records mirrored"].strip() == "1 of 1, in order, all fields"
    assert {rows[name].strip() for name in ("duplicates", "missing", "reordered")} == {"0"}
    assert rows["writers fenced"].strip().startswith("3; 2 commits were slow")
    assert "12,346 records/s" in rows["rate"]


def test_a_good_outcome_is_said_to_be_exactly_once() -> None:
    """An outcome is exactly once if all three conditions hold."""
    assert GOOD.is_good
    assert GOOD.verdict().startswith("Exactly once")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"killed": 0}, "hit no open transaction"),
        ({"exit_code": 1}, "exit code 1"),
        (
            {"proof": Proof(comparison=compare(by_partition(LINE), {}), written={}, read={})},
            "1 missing",
        ),
    ],
)
def test_an_outcome_that_shows_less_is_not_good(change: dict[str, object], reason: str) -> None:
    """No kill in a transaction, a bad exit code or a difference: each alone is a named failure."""
    bad = dataclasses.replace(GOOD, **change)  # type: ignore[arg-type]  # one field of its type

    assert not bad.is_good
    assert reason in bad.verdict()


def test_without_java_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without Java, the demo prints one line and exits with 1."""

    def fail() -> None:
        raise NotInstalled("no Java 17 or newer found: install one")

    monkeypatch.setattr(acts, "find_java", fail)

    assert main(["demo"]) == 1
    assert capsys.readouterr() == ("", "eos-mirror: no Java 17 or newer found: install one\n")


def test_a_demo_that_cannot_be_played_says_why_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A demo that cannot run exits with 1 and one line, without a traceback or leftover files."""

    def fail(*_: object) -> None:
        raise TimeoutError("waited in vain")

    monkeypatch.setattr(acts, "find_java", lambda: None)
    monkeypatch.setattr(acts, "start_clusters", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert main(["demo"]) == 1

    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[-1] == "eos-mirror: waited in vain"
    assert "Traceback" not in printed.err
    assert list(tmp_path.iterdir()) == []


def test_the_rate_is_that_of_two_intervals_together() -> None:
    """The rate covers two intervals, because a late report moves records into the next one."""
    summaries = [
        {"time": f"2026-01-01T00:00:0{second}.000+00:00", "records": records}
        for second, records in enumerate([0, 10, 150, 50, 20])
    ]

    assert best_rate(summaries) == 100
    assert best_rate(summaries[:2]) == 0


def test_a_long_step_says_how_far_it_is() -> None:
    """A long step prints its progress."""
    stream = io.StringIO()

    with Story(stream, ticks_s=(0.0, 0.01)).during("filling", lambda: "half of it"):
        wait_until(
            lambda: stream.getvalue().count("... half of it") > 1,
            within=timedelta(seconds=10),
            what="two signs of life",
        )

    assert "s  filling\n" in stream.getvalue()


def test_states_are_read_from_what_the_transactions_tool_prints() -> None:
    """The state of each id is read from the padded columns after the line of headings."""
    listing = (
        "TransactionalId\tCoordinator\tProducerId\tTransactionState\t\n"
        "eos-mirror.A.B.1\t1          \t0         \tOngoing         \t\n"
        "eos-mirror.A.B.2\t1          \t1         \tEmpty           \t\n"
    )

    states = transaction_states(listing)

    assert states == {"eos-mirror.A.B.1": "Ongoing", "eos-mirror.A.B.2": "Empty"}
