"""
Finds where in a source partition the end of its copy is.

A copier that was killed may have written more than it stored. The last records of the copy show how
far it came, if they fit in only one place of the source.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

SHOWN: Final = 5
"""So many places are kept for an error text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TailMatch:
    """
    Where the copy may end.

    Attributes:
        places: Next source offsets at which the end of the copy fits, the first few.
        count: Number of all such places.
        compared: The most records that were equal at one of them.
    """

    places: tuple[int, ...]
    count: int
    compared: int

    @property
    def next_offset(self) -> int | None:
        """The source offset that continues the copy; None if there is no place, or several."""
        return self.places[0] if self.count == 1 else None


def match_tail(
    copied: Sequence[Hashable], source: Iterable[tuple[int, Hashable]], *, stored: int
) -> TailMatch:
    """
    Compare the end of a copy with the places of its source, from the stored position on.

    After a restart the copier writes some records again, so not all of `copied` need be adjacent in
    the source. But each run of the copier begins at a stored position, and stored positions only
    grow. So everything from `stored` to the end of the copy was written by one run, in order: a
    place fits if its last record is equal, and so are all records between `stored` and it.

    Args:
        copied: The last records of the copy, in order.
        source: Records of the source with their offsets, in order, beginning before `stored`.
        stored: The copier stored this as its next offset.
    """
    before: deque[Hashable] = deque(maxlen=len(copied))
    fits: list[int] = []
    since_stored = compared = 0
    for offset, record in source:
        before.append(record)
        since_stored += offset >= stored
        if not copied or offset + 1 < stored or record != copied[-1]:
            continue
        equal = _equal_at_the_end(before, copied)
        if equal >= min(since_stored, len(copied)):
            fits.append(offset + 1)
            compared = max(compared, equal)
    return TailMatch(places=tuple(fits[:SHOWN]), count=len(fits), compared=compared)


def _equal_at_the_end(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    pairs = zip(reversed(one), reversed(other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
