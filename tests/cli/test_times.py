"""Times on the command line: what is understood, and the one line for everything else."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from eos_mirror.cli.main import main
from eos_mirror.cli.times import past_time_of, time_of
from eos_mirror.errors import ConfigError

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
EITHER = "expected ISO-8601 with a zone, such as 2026-01-31T12:00:00Z, or milliseconds since 1970"


@pytest.mark.parametrize(
    "text", ["2026-01-31T12:00:00Z", "2026-01-31 13:00+01:00", "20260131T120000Z", "1769860800000"]
)
def test_a_time_has_two_forms(text: str) -> None:
    """ISO-8601 with any zone, or milliseconds since 1970, as Kafka's tools print them."""
    assert past_time_of("--until", text, now=NOW) == NOON


def test_milliseconds_are_exact() -> None:
    """No float is between the text and the time."""
    at = past_time_of("--until", "1769860800123", now=NOW)
    assert (at - NOON).total_seconds() == pytest.approx(0.123, abs=1e-9)
    assert at.microsecond == 123_000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("yesterday", f"--until 'yesterday': {EITHER}"),
        ("", f"--until '': {EITHER}"),
        ("2026-01-31T12:00:00", f"--until '2026-01-31T12:00:00': {EITHER}"),
        ("9" * 30, f"--until {'9' * 30}: too many milliseconds since 1970"),
        ("9" * 5000, f"--until {'9' * 5000}: too many milliseconds since 1970"),
        (
            "2026-03-01T00:00:01Z",
            "--until 2026-03-01T00:00:01Z: this time has not come yet; give one that has passed",
        ),
    ],
)
def test_what_is_no_past_time_is_one_line(text: str, says: str) -> None:
    """It names the flag, the text, and what would be understood."""
    with pytest.raises(ConfigError) as refused:
        past_time_of("--until", text, now=NOW)
    assert str(refused.value) == says


def test_a_flag_without_milliseconds_does_not_offer_them() -> None:
    """`verify --from` takes ISO-8601 only."""
    assert time_of("--from", "2026-01-31T12:00:00Z") == NOON
    with pytest.raises(ConfigError, match=r"^--from '12': expected ISO-8601 [^,]*, such as \S+Z$"):
        time_of("--from", "12")


@pytest.mark.parametrize("text", ["soon", "9999-01-01T00:00:00Z"])
def test_a_run_refuses_a_wrong_time_before_it_connects(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line on stderr, exit code 2; the configuration is not even read."""
    assert main(["run", str(tmp_path / "no.properties"), "--until", text]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("eos-mirror: --until ")
    assert (printed.out, printed.err.count("\n")) == ("", 1)


def test_a_run_has_one_end(capsys: pytest.CaptureFixture[str]) -> None:
    """`--once` and `--until` exclude each other."""
    with pytest.raises(SystemExit) as refused:
        main(["run", "mm2.properties", "--once", "--until", "2026-01-31T12:00:00Z"])
    assert refused.value.code == 2
    assert "argument --until: not allowed with argument --once" in capsys.readouterr().err
