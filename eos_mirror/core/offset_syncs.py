"""
Offset syncs: which pairs of offsets MirrorMaker 2 would write, and how to translate with them.

They serve what cannot use the exact offset map: Java's tools, and the at-least-once mode. A
translation with them is never too far ahead. It is exact near the end, and coarser before it.

Source: Kafka's OffsetSyncWriter and OffsetSyncStore (KAFKA-12468, KAFKA-14666, KAFKA-15202).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

SLOTS: Final = 64
UNTRANSLATABLE: Final = -1
"""The offset lies before everything that is known."""


class Sync(NamedTuple):
    """Upstream and downstream offset of one record."""

    upstream: int
    downstream: int


class SyncStore:
    """
    The syncs of one partition: 64 at most, dense at the end and sparse before.

    Invariants, for slots i < j with different syncs (upstream offsets s):
        A: s[0] is the newest.
        B: s[i] <= s[j] + 2^j - 2^i: none is too far away from its slot.
        C: s[i] >= s[j] + 2^max(i-2, 0): none is too near to the next one.
        D: s[63] is the oldest that can be used.
    """

    __slots__ = ("_slots",)

    def __init__(self, first: Sync) -> None:
        self._slots = [first] * SLOTS

    @property
    def slots(self) -> Sequence[Sync]:
        """Syncs from the newest to the oldest; one sync may fill many slots."""
        return self._slots

    def clear(self, sync: Sync) -> None:
        """Keep only this sync."""
        self._slots = [sync] * SLOTS

    def add(self, sync: Sync) -> None:
        """Add a newer sync. If it lies before the newest one, the source went back."""
        if sync.upstream < self._slots[0].upstream:
            self.clear(sync)
            return
        slots, old = self._slots, list(self._slots)
        slots[0] = replacement = sync
        taken = 0  # of the old ones, in order
        for current in range(1, SLOTS):
            before = current - 1
            while True:
                candidate = old[taken]
                parted = _is_parted(slots[before], candidate, before)
                repeats = taken < SLOTS - 1 and old[taken + 1] is candidate
                if (
                    parted
                    and _is_recent(slots[before], candidate, before, current)
                    and (current == SLOTS - 1 or _is_parted(candidate, slots[current + 1], current))
                ):
                    replacement = candidate
                    taken += 1
                elif repeats or not parted:
                    taken += 1
                if taken >= current or (parted and not repeats):
                    break
            if _is_recent(slots[before], slots[current], before, current):
                break  # the slots after it are still right
            slots[current] = replacement

    def translate(self, upstream: int) -> int:
        """
        Return where a group at `upstream` on the source resumes on the target, at the latest.

        Returns:
            The downstream offset, or UNTRANSLATABLE.
        """
        for sync in self._slots:
            if sync.upstream <= upstream:
                return sync.downstream + (0 if sync.upstream == upstream else 1)
        return UNTRANSLATABLE


def _is_recent(newer: Sync, older: Sync, i: int, j: int) -> bool:
    """Check invariant B. Where its bound overflows a long in Java, it holds."""
    bound = older.upstream + (1 << j) - (1 << i)
    return bound >= 1 << 63 or newer.upstream <= bound


def _is_parted(newer: Sync, older: Sync, i: int) -> bool:
    """Check invariant C. Where its bound overflows a long in Java, it does not hold."""
    bound = older.upstream + (1 << max(i - 2, 0))
    return bound < 1 << 63 and newer.upstream >= bound
