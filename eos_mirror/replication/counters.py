"""What a mirror task has done since its process started, as its reports count it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """
    Totals of one process.

    Attributes:
        bytes: Sum of the value lengths.
        commit_ms: Time that flushes and commits took, in all.
        incarnations: Writers that were opened.
        written: See `ports.Lane`.
    """

    written: Mapping[str, int] = field(default_factory=dict)
    records: int = 0
    bytes: int = 0
    transactions: int = 0
    commit_ms: float = 0.0
    incarnations: int = 0

    def committed(self, records: int, took_s: float) -> None:
        """Count one commit."""
        self.records += records
        self.transactions += 1
        self.commit_ms += took_s * 1e3
