"""
The log: one line for each event.

Lines are short on a terminal, and JSON elsewhere. Healthy mirroring logs little: `ready`, one
`flow.summary` per interval, and what an operator should know.
"""

import json
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from eos_mirror.telemetry.events import LEVELS, Level


class EventLog:
    """Writes log events; any thread may call it."""

    def __init__(self, stream: TextIO | None = None, *, verbose: bool = False) -> None:
        """
        Args:
            stream: Where to write; stdout if None.
            verbose: True to write details, too.
        """
        self._stream = stream or sys.stdout
        self._verbose = verbose
        self._lock = threading.Lock()

    def __call__(self, name: str, fields: Mapping[str, Any]) -> None:
        """Write one event of the table."""
        level = LEVELS[name]
        if level is Level.DETAIL and not self._verbose:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self._stream.isatty():
            line = f"{now[11:23]} {name:<20} {_pretty(fields)}"
        else:
            line = json.dumps({"time": now, "event": name, "level": level.value, **fields})
        with self._lock:
            self._stream.write(line + "\n")
            self._stream.flush()


def _pretty(fields: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in fields.items() if value not in ("", None))
