"""The shapes of the topics that the benchmarks mirror."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum


class Compaction(Enum):
    """What compaction has left of a source topic."""

    NONE = ""
    ALL = "compact"
    """The topic is compacted, but no two records have the same key."""
    HALF = "compacted"
    """Every second record is gone, from every batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """
    One topic that is filled once.

    Attributes:
        records: Records that remain when the topic has been compacted.
        batch_bytes: Largest batch on the source; `SINGLE` is one record in each batch.
        codec: Compression on the source; peers are configured to write the same.
        headers: Whether each record has two headers.
        partitions: Number of partitions; the records are spread evenly.
        decoded: A transform of each peer adds a header to each record.
        lane_times: Our own lane copies so many times the records: it is that much faster, and
            needs a steady state of some seconds, too.
        is_long: This is the topic of our own lane.
    """

    value_bytes: int
    records: int
    batch_bytes: int = 900_000
    codec: str = "none"
    headers: bool = False
    partitions: int = 8
    compaction: Compaction = Compaction.NONE
    decoded: bool = False
    lane_times: int = 1
    is_long: bool = False

    @property
    def name(self) -> str:
        """The name of its row in the table."""
        parts = [f"{self.value_bytes}B"]
        if self.codec != "none":
            parts.append(self.codec)
        if self.batch_bytes != DEFAULT.batch_bytes:
            parts.append(f"batches-{self.batch_bytes}")
        if self.headers:
            parts.append("headers")
        if self.compaction is not Compaction.NONE:
            parts.append(self.compaction.value)
        if self.decoded:
            parts.append("decoded")
        if self.partitions != DEFAULT.partitions:
            parts.append(f"partitions-{self.partitions}")
        return "-".join(parts)

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return f"{self.name}-long" if self.is_long else self.name

    @property
    def copies_of_key(self) -> int:
        """How many consecutive records are produced with the same key; the last one remains."""
        return 2 if self.compaction is Compaction.HALF else 1

    def shortened(self, share: float) -> "Cell":
        """Return a cell of the same name with this share of the records."""
        return replace(self, records=int(self.records * share))

    def sized(self, *, own_lane: bool) -> "Cell":
        """Return the cell with the number of records that such a peer copies."""
        if not own_lane or self.lane_times == 1:
            return self
        return replace(self, records=self.records * self.lane_times, lane_times=1, is_long=True)


SINGLE = 1
DEFAULT = Cell(value_bytes=100, records=8_000_000, lane_times=3)
"""
Like the other cells of `QUICK` and `FULL`, it has enough records for a few seconds of steady state
at the measured rates.
"""

CELLS: Mapping[str, Cell] = {
    cell.name: cell
    for cell in (
        DEFAULT,
        Cell(value_bytes=1_000, records=3_000_000, lane_times=2),
        Cell(value_bytes=10_000, records=300_000, lane_times=2),
        Cell(value_bytes=100, records=6_000_000, batch_bytes=16_000, lane_times=3),
        Cell(value_bytes=1_000, records=3_000_000, codec="lz4", lane_times=3),
        Cell(value_bytes=1_000, records=3_000_000, codec="zstd", lane_times=3),
        Cell(value_bytes=1_000, records=2_000_000, headers=True, lane_times=2),
        Cell(value_bytes=100, records=2_000_000, batch_bytes=SINGLE),
        Cell(value_bytes=100, records=6_000_000, decoded=True),
        Cell(value_bytes=100, records=4_000_000, compaction=Compaction.ALL, lane_times=3),
        Cell(value_bytes=100, records=4_000_000, compaction=Compaction.HALF),
        Cell(value_bytes=100, records=4_000_000, partitions=1, lane_times=3),
        Cell(value_bytes=1_000, records=200_000, partitions=1, lane_times=3),
        Cell(value_bytes=100, records=4_000_000, partitions=100, lane_times=3),
    )
}
QUICK = ("100B", "1000B")
FULL = ("100B", "1000B", "100B-batches-16000", "1000B-zstd")
LANE = ("100B", "1000B", "1000B-zstd", "1000B-lz4", "100B-batches-16000", "100B-batches-1")
"""The table of our own lane."""
LANE_MORE = (
    "100B-decoded",
    "10000B",
    "1000B-headers",
    "100B-compact",
    "100B-compacted",
)
"""Its further cells."""
DISTANT = "1000B-partitions-1"
