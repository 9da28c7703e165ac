"""
The log: one line for each event.

Lines are short on a terminal, and JSON elsewhere. Healthy mirroring logs little: `ready`, one
`flow.summary` per interval, and what an operator should know.
"""

import json
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from eos_mirror.telemetry.events import LEVELS, Level

Paint = Callable[[str, Level], str]
"""Takes the level and the name of an event, and returns them in colour."""


def _unpainted(text: str, _level: Level) -> str:
    return text


class EventLog:
    """Writes log events; any thread may call it."""

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        verbose: bool = False,
        as_json: bool = False,
        paint: Paint = _unpainted,
    ) -> None:
        """
        Args:
            stream: Where to write; None writes to the stdout of that moment.
            verbose: True to write details, too.
            as_json: True to write JSON on a terminal, too.
            paint: Used on a terminal only.
        """
        self._stream = stream
        self._verbose = verbose
        self._paint = paint
        self._is_for_people = (stream or sys.stdout).isatty() and not as_json
        self._lock = threading.Lock()

    def __call__(self, name: str, fields: Mapping[str, Any]) -> None:
        """Write one event of the table."""
        level = LEVELS[name]
        if level is Level.DETAIL and not self._verbose:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self._is_for_people:
            what = self._paint(f"{level.value:<7} {name:<20}", level)
            line = f"{now[11:23]} {what} {_pretty(fields)}"
        else:
            line = json.dumps({"time": now, "event": name, "level": level.value, **fields})
        with self._lock:
            stream = self._stream or sys.stdout
            stream.write(line + "\n")
            stream.flush()


def _pretty(fields: Mapping[str, Any]) -> str:
    return " ".join(
        f"{key}={_shown(value)}" for key, value in fields.items() if value not in ("", None)
    )


def _shown(value: object) -> str:
    """Return a value as text; what it contains is in parentheses."""
    if isinstance(value, Mapping):
        return f"({_pretty(value)})"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(_shown(one) for one in value)})"
    return str(value)
