"""What protects in each row of the failure matrix, read from table.toml beside this file."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("table.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """
    Attributes:
        row: Of the failure matrix.
        off: What the mirror does without it.
        path: The file to change, from the root of the project.
        changes: Old text, which is there once, and new text.
        test: The test that must fail then.
    """

    row: str
    off: str
    path: str
    changes: Sequence[tuple[str, str]]
    test: str

    def applied_to(self, text: str) -> str:
        """
        The text of the file without the protection.

        Raises:
            ValueError: Old text is not there, or more than once.
        """
        for old, new in self.changes:
            if text.count(old) != 1:
                raise ValueError(f"{self.row}: not there once in {self.path}: {old!r}")
            text = text.replace(old, new)
        return text


def load_protections() -> list[Protection]:
    """All of them, in the order of the matrix."""
    return [
        Protection(
            row=one["row"],
            off=one["off"],
            path=one["path"],
            changes=[(change["old"], change["new"]) for change in one["change"]],
            test=one["test"],
        )
        for one in tomllib.loads(TABLE.read_text())["protection"]
    ]
