"""The shapes of the topics that the benchmarks mirror."""

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """
    One topic that is filled once.

    Attributes:
        batch_bytes: Largest batch on the source.
        codec: Compression on the source; peers are configured to write the same.
        headers: Whether each record has two headers.
        partitions: Number of partitions; the records are spread evenly.
    """

    value_bytes: int
    records: int
    batch_bytes: int = 900_000
    codec: str = "none"
    headers: bool = False
    partitions: int = 8

    @property
    def name(self) -> str:
        """The name of the topic and of its row in the table."""
        parts = [f"{self.value_bytes}B"]
        if self.codec != "none":
            parts.append(self.codec)
        if self.batch_bytes != DEFAULT.batch_bytes:
            parts.append(f"batches-{self.batch_bytes}")
        if self.headers:
            parts.append("headers")
        if self.partitions != DEFAULT.partitions:
            parts.append(f"partitions-{self.partitions}")
        return "-".join(parts)

    def shortened(self, share: float) -> "Cell":
        """Return a cell of the same name with this share of the records."""
        return replace(self, records=int(self.records * share))


DEFAULT = Cell(value_bytes=100, records=8_000_000)
"""
Like the other cells of `QUICK` and `FULL`, it has enough records for a few seconds of steady state
at the measured rates.
"""

CELLS: Mapping[str, Cell] = {
    cell.name: cell
    for cell in (
        DEFAULT,
        Cell(value_bytes=1_000, records=3_000_000),
        Cell(value_bytes=10_000, records=100_000),
        Cell(value_bytes=100, records=4_000_000, batch_bytes=16_000),
        Cell(value_bytes=1_000, records=1_000_000, codec="lz4"),
        Cell(value_bytes=1_000, records=2_000_000, codec="zstd"),
        Cell(value_bytes=1_000, records=1_000_000, headers=True),
        Cell(value_bytes=100, records=200_000, batch_bytes=1),
        Cell(value_bytes=100, records=4_000_000, partitions=1),
        Cell(value_bytes=100, records=4_000_000, partitions=100),
    )
}
QUICK = ("100B", "1000B")
FULL = ("100B", "1000B", "100B-batches-16000", "1000B-zstd")
