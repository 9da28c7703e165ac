"""The protection for each row of the failure matrix, read from table.toml beside this file."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("table.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """
    Code that protects against one failure, and the test that fails without it.

    Attributes:
        row: Row of the failure matrix.
        data_path: `data.path` of the mirror in the test; empty: the default.
        off: What the mirror does without the protection.
        path: The file to change, relative to the root of the project.
        changes: Pairs of old text, which must occur exactly once, and new text.
        test: The test that must fail without the protection.
    """

    row: str
    data_path: str
    off: str
    path: str
    changes: Sequence[tuple[str, str]]
    test: str

    @property
    def name(self) -> str:
        """The row and the data path."""
        return f"{self.row} {self.data_path}".rstrip()

    def applied_to(self, text: str) -> str:
        """
        Return the text of the file without the protection.

        Raises:
            ValueError: An old text does not occur exactly once.
        """
        for old, new in self.changes:
            if text.count(old) != 1:
                raise ValueError(f"{self.row}: not there once in {self.path}: {old!r}")
            text = text.replace(old, new)
        return text


def load_protections() -> list[Protection]:
    """Return all protections, in the order of the matrix."""
    return [
        Protection(
            row=one["row"],
            data_path=one.get("data_path", ""),
            off=one["off"],
            path=one["path"],
            changes=[(change["old"], change["new"]) for change in one["change"]],
            test=one["test"],
        )
        for one in tomllib.loads(TABLE.read_text())["protection"]
    ]
