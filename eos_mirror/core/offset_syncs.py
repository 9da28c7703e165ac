"""
Offset syncs: which pairs of offsets MirrorMaker 2 would note, and what can be told from them.

What cannot use the exact offset map lives on these: Java's tools, and the at-least-once mode. A
translation from them is never too far ahead, exact near the end, and the coarser the farther
behind.

Source: Kafka's OffsetSyncWriter and OffsetSyncStore (KAFKA-12468, KAFKA-14666, KAFKA-15202).
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

SLOTS: Final = 64
UNTRANSLATABLE: Final = -1
"""The offset lies before everything that is known."""

_FIRST: Final = -1


class Sync(NamedTuple):
    """Upstream and downstream offset of one record."""

    upstream: int
    downstream: int


class SyncRule:
    """
    Whether a mirrored record of one partition needs a sync at once.

    It does if it is the first, if what was noted last lies `max_lag` behind, behind a hole on the
    source, or if the target went back.
    """

    def __init__(self, max_lag: int) -> None:
        """
        Args:
            max_lag: `offset.lag.max`, in offsets of the target; 0 notes every record.
        """
        self._max_lag = max_lag
        self._previous = Sync(_FIRST, _FIRST)
        self._noted = _FIRST

    def is_due(self, upstream: int, downstream: int) -> bool:
        """For the record that was just mirrored."""
        previous, self._previous = self._previous, Sync(upstream, downstream)
        due = (
            self._noted == _FIRST
            or downstream - (self._noted + 1) >= self._max_lag
            or upstream - previous.upstream != 1
            or downstream < previous.downstream
        )
        if due:
            self._noted = downstream
        return due


class SyncStore:
    """
    What is known of one partition: 64 syncs at most, dense at the end and sparse before.

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
        """From the newest to the oldest; one sync may stand in many."""
        return self._slots

    def clear(self, sync: Sync) -> None:
        """Know only this one."""
        self._slots = [sync] * SLOTS

    def add(self, sync: Sync) -> None:
        """A newer one. One that lies before the newest means that the source went back."""
        if sync.upstream < self._slots[0].upstream:
            self.clear(sync)
            return
        slots, old = self._slots, list(self._slots)
        slots[0] = replacement = sync
        taken = 0  # of the old ones, in their order
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
                break  # what follows is still right
            slots[current] = replacement

    def translate(self, upstream: int) -> int:
        """
        Where a group that is at `upstream` on the source goes on on the target, at the latest.

        Returns:
            Its offset, or UNTRANSLATABLE.
        """
        for sync in self._slots:
            if sync.upstream <= upstream:
                return sync.downstream + (0 if sync.upstream == upstream else 1)
        return UNTRANSLATABLE


def loaded(syncs: Iterable[Sync], *, only_the_last: bool) -> SyncStore | None:
    """
    A store from the syncs of a topic, in their order; None of none.

    Args:
        only_the_last: Translate nothing that is older: without the checkpoints that were made
            from the earlier ones, a group could be sent back.
    """
    store: SyncStore | None = None
    for sync in syncs:
        if store is None:
            store = SyncStore(sync)
        elif only_the_last:
            store.clear(sync)
        else:
            store.add(sync)
    return store


def _is_recent(newer: Sync, older: Sync, i: int, j: int) -> bool:
    """Invariant B. A bound that does not fit into a long overflows in Java, and then holds."""
    bound = older.upstream + (1 << j) - (1 << i)
    return bound >= 1 << 63 or newer.upstream <= bound


def _is_parted(newer: Sync, older: Sync, i: int) -> bool:
    """Invariant C. A bound that does not fit into a long overflows in Java, and does not hold."""
    bound = older.upstream + (1 << max(i - 2, 0))
    return bound < 1 << 63 and newer.upstream >= bound
