"""
The end of one partition's map, from some offset on.

A map grows indefinitely, and a caller that asks for offsets near its end needs little of it. The
window drops earlier segments and remembers that it did: a caller that needs them has to read the
map again.
"""

from eos_mirror.core.map_segment import Segment, decode_segment, upstream_start_of

TRIM_ABOVE = 64
"""Segments above which a growing window is trimmed; each covers up to 64 transactions."""


class MapWindow:
    """
    Segments of one partition, as they were written.

    Attributes:
        lowest: Smallest upstream offset that will be asked for; None: none will be.
    """

    __slots__ = ("_encoded", "_is_cut", "_trim_above", "lowest")

    def __init__(self, lowest: int | None = None) -> None:
        self.lowest = lowest
        self._encoded: dict[int, bytes] = {}
        self._is_cut = False
        self._trim_above = TRIM_ABOVE

    def __len__(self) -> int:
        """Return the number of segments held."""
        return len(self._encoded)

    def put(self, number: int, data: bytes | None) -> None:
        """Add a segment of the log; None removes it."""
        if data is None:
            self._encoded.pop(number, None)
            return
        self._encoded[number] = data
        if len(self._encoded) > self._trim_above:
            self.trim()
            self._trim_above = max(TRIM_ABOVE, 2 * len(self._encoded))

    def trim(self) -> None:
        """
        Drop segments that lie wholly before `lowest`.

        Raises:
            ValueError: A segment cannot be read.
        """
        numbers = sorted(self._encoded)
        keep = len(numbers)
        if self.lowest is not None:
            while keep and upstream_start_of(self._encoded[numbers[keep - 1]]) > self.lowest:
                keep -= 1
            keep = max(0, keep - 1)
        for number in numbers[:keep]:
            del self._encoded[number]
            self._is_cut = True

    def reaches(self, upstream: int, tail_start: int) -> bool:
        """
        Return True if no segment that this offset needs was dropped.

        Args:
            tail_start: First upstream offset of the tail.
        """
        if not self._is_cut:
            return True
        starts = [tail_start, *map(upstream_start_of, self._encoded.values())]
        return min(starts) <= upstream

    def segments(self) -> list[Segment]:
        """
        Return the segments held.

        Raises:
            ValueError: A segment cannot be read.
        """
        return [decode_segment(data) for data in self._encoded.values()]
