"""What the cells of a result are called, and what they were: results keep only the names."""

import re
from typing import NamedTuple

_COPY = re.compile(r"(.+), (\d+) ms, tasks: (\d+)")
_MANY = re.compile(r"(\d+) partitions, (\d+) records a second")


class Copied(NamedTuple):
    """A cell that was copied with commits at an interval, by so many tasks of a peer."""

    cell: str
    interval_ms: int
    tasks: int

    def __str__(self) -> str:
        return f"{self.cell}, {self.interval_ms} ms, tasks: {self.tasks}"

    @staticmethod
    def parse(text: str) -> "Copied | None":
        """None if it is the name of something else."""
        found = _COPY.fullmatch(text)
        return Copied(found[1], int(found[2]), int(found[3])) if found else None


class Many(NamedTuple):
    """A topic with many partitions under a load; 0 is at rest."""

    partitions: int
    rate: int

    def __str__(self) -> str:
        return f"{self.partitions} partitions, {self.rate} records a second"

    @staticmethod
    def parse(text: str) -> "Many | None":
        """None if it is the name of something else."""
        found = _MANY.fullmatch(text)
        return Many(int(found[1]), int(found[2])) if found else None
