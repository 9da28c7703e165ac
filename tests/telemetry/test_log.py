"""The log: JSON for programs, short lines for people."""

import io
import json
import sys
from typing import Any

import pytest

from eos_mirror.telemetry.events import Level
from eos_mirror.telemetry.log import EventLog

READY = {"after_s": 1.25, "flows": [{"flow": "A->B", "tasks": 2}, {"flow": "C->B", "tasks": 1}]}


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """See TextIO."""
        return True


def logged(stream: io.StringIO, name: str, fields: dict[str, Any], **arguments: Any) -> str:
    """Log one event, and return what was written."""
    EventLog(stream, **arguments)(name, fields)
    return stream.getvalue()


@pytest.mark.parametrize(("stream", "arguments"), [(io.StringIO, {}), (Screen, {"as_json": True})])
def test_a_program_gets_json(stream: type[io.StringIO], arguments: dict[str, Any]) -> None:
    """Without a terminal, or with --json: one object with these keys, in this order."""
    line = logged(stream(), "ready", READY, paint=lambda *_: "never", **arguments)

    found = json.loads(line)
    time = found.pop("time")
    assert line == json.dumps({"time": time, "event": "ready", "level": "info", **READY}) + "\n"
    assert len(time) == len("2026-11-27T10:02:11.123+00:00")


def test_a_person_gets_a_short_line() -> None:
    """Time, level, event and fields; what is nested is in parentheses."""
    line = logged(Screen(), "ready", {**READY, "degraded_s": None, "reason": ""})

    assert line[12:] == (
        " info    ready                after_s=1.25 "
        "flows=((flow=A->B tasks=2), (flow=C->B tasks=1))\n"
    )


def test_the_level_and_the_name_are_painted_on_a_terminal() -> None:
    """The colour of a line depends on its level alone."""

    def paint(text: str, level: Level) -> str:
        return f"<{level.value} {text.split()[1]}>"

    line = logged(Screen(), "degraded", {"flows": []}, paint=paint)

    assert line[12:] == " <warning degraded> flows=()\n"


def test_the_log_follows_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A progress bar takes the place of stdout for a while, and prints lines above itself."""
    log, other = EventLog(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", other)

    log("stopping", {"signal": "SIGTERM"})

    assert json.loads(other.getvalue())["signal"] == "SIGTERM"
    assert capsys.readouterr().out == ""


def test_details_are_written_only_when_asked_for() -> None:
    """`--verbose`."""
    assert logged(io.StringIO(), "task.stopped", {}) == ""
    assert logged(io.StringIO(), "task.stopped", {}, verbose=True) != ""
