"""
How many records a run has written, by path: the metadata of the offset of the drivers' group.

Everybody who may describe that group can read it, also when the process does not answer.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsReport:
    """
    Records since the start of a run, by path (docs/data-path.md).

    Attributes:
        run: `RunIdentity.encode` of the run.
        passed: Records in batches that passed through unchanged.
        decoded: The other records, by reason.
    """

    run: str
    passed: int
    decoded: Mapping[str, int]

    @property
    def records(self) -> int:
        """All records."""
        return self.passed + sum(self.decoded.values())

    def encode(self) -> str:
        """Return the text; a few hundred characters."""
        fields = {
            "version": VERSION,
            "run": self.run,
            "passed": self.passed,
            "decoded": dict(self.decoded),
        }
        return json.dumps(fields, separators=(",", ":"))


def decode_paths(text: str) -> PathsReport | None:
    """Return the report; None if another program or release wrote the text."""
    try:
        fields: Any = json.loads(text)
        if fields["version"] != VERSION:
            return None
        return PathsReport(
            run=str(fields["run"]),
            passed=int(fields["passed"]),
            decoded={str(why): int(count) for why, count in fields["decoded"].items()},
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
