"""Offset syncs: the vectors of Kafka's own tests, and invariants for any spacing of syncs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.offset_syncs import (
    SLOTS,
    UNTRANSLATABLE,
    Sync,
    SyncStore,
)


def store_of(*pairs: tuple[int, int]) -> SyncStore:
    """Return a store that received these syncs one after the other."""
    store = SyncStore(Sync(*pairs[0]))
    for pair in pairs[1:]:
        store.add(Sync(*pair))
    return store


def usable(store: SyncStore) -> list[int]:
    """Return the upstream offsets of the syncs that a store still has, oldest first."""
    return sorted({sync.upstream for sync in store.slots})


def test_a_translation_is_exact_or_behind() -> None:
    """A translation is exact or too low, as in Kafka's testOffsetTranslation."""
    store = store_of((100, 200))
    assert store.translate(150) == 201
    store.add(Sync(150, 251))
    assert (store.translate(150), store.translate(5)) == (251, UNTRANSLATABLE)
    store.add(Sync(200, 10))
    assert store.translate(200) == 10
    store.add(Sync(20, 20))
    assert store.translate(20) == 20
    assert usable(store) == [20]


@pytest.mark.parametrize(
    ("only_the_last", "after_load", "after_all"),
    [
        (
            True,
            [1000],
            [1000, 4840, 6760, 8680, 9160, 9640, 9880, 9940, 9970, 9990, 10000],
        ),
        (
            False,
            [0, 480, 720, 840, 900, 960, 970, 980, 990, 1000],
            [0, 3840, 7680, 8640, 9120, 9600, 9840, 9900, 9960, 9990, 10000],
        ),
    ],
)
def test_what_stays_usable_is_dense_at_the_end(
    only_the_last: bool, after_load: list[int], after_all: list[int]
) -> None:
    """
    The syncs that a store keeps are dense near the end, as in Kafka's testPastOffsetTranslation.

    Syncs from 0 to 1,000 are read at the start; those up to 10,000 arrive later.
    """
    store = SyncStore(Sync(0, 0))
    for offset in range(10, 1001, 10):
        if only_the_last:
            store.clear(Sync(offset, offset))
        else:
            store.add(Sync(offset, offset))
    if only_the_last:
        assert usable(store) == after_load
    else:
        assert usable(store)[:3] == after_load[:3]
        assert usable(store)[-2:] == after_load[-2:]
    for offset in range(1010, 10001, 10):
        store.add(Sync(offset, offset))
    assert usable(store) == after_all
    if only_the_last:
        wanted = {999: UNTRANSLATABLE, 4839: 1001, 4840: 4840, 4841: 4841, 10000: 10000}
        assert {offset: store.translate(offset) for offset in wanted} == wanted
    store.add(Sync(1500, 11000))
    wanted = {1499: UNTRANSLATABLE, 1500: 11000, 2000: 11001}
    assert {offset: store.translate(offset) for offset in wanted} == wanted


STEPS = st.lists(st.integers(1, 2**20), min_size=1, max_size=200)


@given(STEPS)
def test_the_invariants_hold_for_any_spacing(steps: list[int]) -> None:
    """Invariants A to D hold for any spacing of the syncs."""
    upstream = 0
    store = SyncStore(Sync(0, 0))
    for step in steps:
        upstream += step
        store.add(Sync(upstream, upstream))
    slots = store.slots
    assert slots[0].upstream == upstream
    assert min(slots) == slots[-1]
    for i in range(SLOTS):
        for j in range(i + 1, SLOTS):
            if slots[i] != slots[j]:
                assert slots[i].upstream <= slots[j].upstream + 2**j - 2**i
                assert slots[i].upstream >= slots[j].upstream + 2 ** max(i - 2, 0)


@given(STEPS, st.integers(0, 2**28))
def test_a_translation_never_overshoots(steps: list[int], upstream: int) -> None:
    """A translation is at most one past the last sync at or before the offset."""
    at = Sync(0, 0)
    syncs = [at]
    for step in steps:
        at = Sync(at.upstream + step, at.downstream + (step + 1) // 2)
        syncs.append(at)
    store = store_of(*syncs)
    found = store.translate(upstream)
    last = max(sync for sync in syncs if sync.upstream <= upstream)
    assert found <= last.downstream + (last.upstream != upstream)
    if upstream >= at.upstream:
        assert found == at.downstream + (upstream != at.upstream)


def test_offsets_near_the_end_of_a_long_do_not_confuse_it() -> None:
    """Offsets near the end of a long are translated, although the bound overflows in Java."""
    top = 2**63 - 1
    store = store_of((top - 100, 1), (top - 50, 2), (top, 3))
    assert store.translate(top) == 3
    assert store.translate(top - 10) == 3
