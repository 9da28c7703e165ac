"""The names of the cells of a result, and how to parse them: results keep only the names."""

import re
from typing import NamedTuple

_COPY = re.compile(r"(.+), (\d+) ms, tasks: (\d+)")
_MANY = re.compile(r"(\d+) partitions, (\d+) records a second")


class Copied(NamedTuple):
    """A cell that a peer copied with this commit interval and this many tasks."""

    cell: str
    interval_ms: int
    tasks: int

    def __str__(self) -> str:
        return f"{self.cell}, {self.interval_ms} ms, tasks: {self.tasks}"

    @staticmethod
    def parse(text: str) -> "Copied | None":
        """Parse a name; return None if it names something else."""
        found = _COPY.fullmatch(text)
        return Copied(found[1], int(found[2]), int(found[3])) if found else None


class Many(NamedTuple):
    """A topic with many partitions under a load; 0 is idle."""

    partitions: int
    rate: int

    def __str__(self) -> str:
        return f"{self.partitions} partitions, {self.rate} records a second"

    @staticmethod
    def parse(text: str) -> "Many | None":
        """Parse a name; return None if it names something else."""
        found = _MANY.fullmatch(text)
        return Many(int(found[1]), int(found[2])) if found else None
