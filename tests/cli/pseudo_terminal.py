"""A pseudo-terminal, and everything that was written to it."""

import os
import pty
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TextIO

import pytest

from eos_mirror.testing import wait_until

COLUMNS, LINES = 100, 30
ABOUT_TERMINALS = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
ENVIRONMENT = {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(LINES)}
SOON = timedelta(seconds=60)


class PseudoTerminal:
    """
    A pseudo-terminal.

    Attributes:
        fd: For a process that uses it.
        stream: For a function that uses it.
    """

    def __init__(self) -> None:
        self._ours, self.fd = pty.openpty()
        self.stream: TextIO = os.fdopen(self.fd, "w", encoding="utf-8")
        self._found = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):  # EIO: the other end is closed
            while part := os.read(self._ours, 65_536):
                self._found += part

    def so_far(self) -> str:
        """Return what has been written until now."""
        return self._found.decode(errors="replace").replace("\r\n", "\n")

    def wait_for(self, text: str, *, count: int = 1) -> None:
        """Wait until this has been written so often."""
        wait_until(lambda: self.so_far().count(text) >= count, within=SOON, what=repr(text))

    def text(self) -> str:
        """Close it, and return what has been written."""
        self.stream.close()
        self._reader.join(SOON.total_seconds())
        return self.so_far()

    def close(self) -> None:
        """Close both ends."""
        self.text()
        os.close(self._ours)


@contextmanager
def pseudo_terminal(patch: pytest.MonkeyPatch) -> Iterator[PseudoTerminal]:
    """Open one; the environment says that it has colours, 100 columns and 30 lines."""
    for name in ABOUT_TERMINALS:
        patch.delenv(name, raising=False)
    for name, value in ENVIRONMENT.items():
        patch.setenv(name, value)
    opened = PseudoTerminal()
    try:
        yield opened
    finally:
        opened.close()
