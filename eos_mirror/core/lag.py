"""How much of a source partition is not mirrored yet. Pure functions."""

from collections.abc import Mapping
from typing import TypeVar

FROM_THE_START = "earliest"
"""The `start.position` of a flow that will mirror everything of a new partition."""

P = TypeVar("P")


def begin_at_the_start(
    positions: Mapping[P, int], ends: Mapping[P, int], *, start_position: str
) -> list[P]:
    """
    Return the partitions of which nothing is mirrored: their lag is the whole log.

    They have no position yet, or one after the end: then the topic was deleted and created again,
    or lost its end, and nothing of the present log is mirrored. A lag of 0 would say the opposite.

    Args:
        positions: Committed source offsets.
        ends: High watermarks.
        start_position: The flow's. Unless it is `earliest`, the lag of a partition without a
            position is not known before the first commit.
    """
    return [
        one
        for one, end in ends.items()
        if (positions[one] > end if one in positions else start_position == FROM_THE_START)
    ]
