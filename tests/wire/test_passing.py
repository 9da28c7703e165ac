"""Which batches are passed through unchanged."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from eos_mirror.wire.batches import Batch
from eos_mirror.wire.codecs import CODECS
from eos_mirror.wire.passing import Obstacle, PassLimits, obstacle, worth_merging
from tests.wire.examples import NOW_MS, batch_of, changed, plain_rows, whole, with_attributes
from tests.wire.java_batches import BATCHES

LIMITS = PassLimits(max_bytes=1 << 20)
ROWS = plain_rows(10)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("transactional", [0, 0x10])
def test_a_plain_batch_is_passed_through(codec: int, transactional: int) -> None:
    """Every codec passes, and so do batches of committed transactions."""
    batch = batch_of(ROWS, base_offset=5, codec=codec)
    batch = with_attributes(batch, batch.attributes | transactional)

    assert obstacle(batch, 5, LIMITS) is None


REFUSED: dict[str, tuple[Callable[[Batch], Batch], Obstacle]] = {
    "control": (lambda batch: with_attributes(batch, 0x30), Obstacle.CONTROL),
    "append time": (lambda batch: with_attributes(batch, 0x08), Obstacle.APPEND_TIME),
    "append time and codec": (lambda batch: with_attributes(batch, 0x0C), Obstacle.APPEND_TIME),
    "horizon": (lambda batch: with_attributes(batch, 0x40), Obstacle.DELETE_HORIZON),
    "bit 7": (lambda batch: with_attributes(batch, 0x80), Obstacle.UNKNOWN_ATTRIBUTE),
    "bit 8": (lambda batch: with_attributes(batch, 0x100), Obstacle.UNKNOWN_ATTRIBUTE),
    "bit 15": (lambda batch: with_attributes(batch, -0x8000), Obstacle.UNKNOWN_ATTRIBUTE),
    "codec 5": (lambda batch: with_attributes(batch, 5), Obstacle.UNKNOWN_ATTRIBUTE),
    "codec 7": (lambda batch: with_attributes(batch, 0x17), Obstacle.UNKNOWN_ATTRIBUTE),
    "compacted": (lambda batch: changed(batch, ">i", 57, 9), Obstacle.GAPS),
    "more than fit": (lambda batch: changed(batch, ">i", 57, 11), Obstacle.GAPS),
    "empty": (lambda batch: changed(batch, ">i", 57, 0), Obstacle.GAPS),
    "negative": (lambda batch: changed(batch, ">i", 57, -1), Obstacle.GAPS),
    "no offsets": (lambda batch: changed(batch, ">i", 23, -1), Obstacle.GAPS),
    "magic 1": (lambda _: whole(BATCHES[1, "gzip"]), Obstacle.OLD_FORMAT),
    "magic 0": (lambda _: whole(BATCHES[0, "none"][:74]), Obstacle.OLD_FORMAT),
}


@pytest.mark.parametrize(("change", "expected"), REFUSED.values(), ids=REFUSED)
def test_a_batch_that_a_broker_would_refuse_or_change_is_decoded(
    change: Callable[[Batch], Batch], expected: Obstacle
) -> None:
    """Each row names what makes passing unsafe."""
    assert obstacle(change(batch_of(ROWS)), 0, LIMITS) is expected


def test_no_attribute_passes_unless_it_is_known() -> None:
    """Of all 65,536 attributes, ten pass: five codecs, inside and outside of a transaction."""
    batch = batch_of(ROWS)
    passed = []
    for attributes in range(-(2**15), 2**15):
        batch.attributes = attributes
        if obstacle(batch, 0, LIMITS) is None:
            passed.append(attributes)

    assert passed == [0, 1, 2, 3, 4, 16, 17, 18, 19, 20]


def test_a_batch_that_begins_before_the_position_is_decoded() -> None:
    """Its first records were copied already."""
    batch = batch_of(ROWS, base_offset=5)

    assert obstacle(batch, 6, LIMITS) is Obstacle.BEFORE_POSITION
    assert obstacle(batch, 5, LIMITS) is None
    assert obstacle(batch, 4, LIMITS) is None


def test_what_the_target_may_refuse_is_decoded() -> None:
    """The limits of the topic are checked as far as a header shows them, and refused beyond."""
    batch = batch_of(ROWS)
    latest = NOW_MS + 9

    for limits, expected in (
        (PassLimits(max_bytes=batch.size), None),
        (PassLimits(max_bytes=batch.size - 1), Obstacle.TOO_LARGE),
        (replace(LIMITS, latest_ms=latest), None),
        (replace(LIMITS, latest_ms=latest - 1), Obstacle.LATE_TIMESTAMP),
        (replace(LIMITS, earliest_ms=0), Obstacle.EARLY_TIMESTAMP),
        (replace(LIMITS, compacted=True), Obstacle.COMPACTED_TARGET),
    ):
        assert obstacle(batch, 0, limits) is expected


def test_a_base_timestamp_after_the_latest_is_refused() -> None:
    """A header may lie about its largest timestamp; a broker corrects it."""
    batch = changed(batch_of(ROWS), ">q", 35, 0)

    limits = PassLimits(max_bytes=1 << 20, latest_ms=NOW_MS - 1)
    assert obstacle(batch, 0, limits) is Obstacle.LATE_TIMESTAMP


def test_the_names_of_the_obstacles_are_labels() -> None:
    """They appear in metrics and in the status, so they are plain and distinct."""
    assert all(each.value == each.name.lower() for each in Obstacle)


@pytest.mark.parametrize(
    ("counts", "value_bytes", "expected"),
    [
        ([1, 2, 1], 20, True),
        ([7, 7], 20, True),
        ([8, 8], 20, False),
        ([1], 20, False),
        ([], 20, False),
        ([1, 1], 9000, False),
        ([1, 20], 20, False),
    ],
)
def test_tiny_neighbours_are_merged(counts: list[int], value_bytes: int, expected: bool) -> None:
    """Several batches are merged if they are small both in records and in bytes."""
    batches = [batch_of(plain_rows(count, value_bytes=value_bytes)) for count in counts]

    assert worth_merging(batches) is expected
