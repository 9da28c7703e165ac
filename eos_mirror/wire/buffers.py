"""Memory for large answers, used again when nothing refers to it any more."""

from typing import Final

KEPT_BYTES: Final = 24 << 20
"""What waits for acknowledgements, an answer that is handled, and one that arrives."""

MOST_BYTES: Final = 12 << 20
"""A larger answer has one huge batch. Its memory is given back to the system."""

LEAST_BYTES: Final = 64 << 10
"""A smaller answer gets memory of its own: that costs less than to look for some."""


class Buffers:
    """
    The memory of all connections of one cluster: it does not grow with the number of brokers. Used
    by one thread.

    New memory is filled with zeros by the system, page by page, which takes as long as to receive
    a third of the answer (benchmarks/throughput.py).
    """

    def __init__(self) -> None:
        self._kept: list[bytearray] = []

    def of(self, size: int) -> memoryview:
        """Return memory of this many bytes. It is free again when no view of it is left."""
        if not LEAST_BYTES <= size <= MOST_BYTES:
            return memoryview(bytearray(size))
        for one in self._kept:
            if len(one) >= size and _is_free(one):
                return memoryview(one)[:size]
        made = bytearray(size)
        self._kept.append(made)
        while sum(map(len, self._kept)) > KEPT_BYTES:
            del self._kept[0]
        return memoryview(made)


def _is_free(memory: bytearray) -> bool:
    """Return True if no view refers to the memory: only then its size can change."""
    try:
        memory.append(0)
    except BufferError:
        return False
    memory.pop()
    return True
