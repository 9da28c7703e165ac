"""A window of a map holds the segments that are needed, and knows which it has dropped."""

import pytest

from eos_mirror.core.map_window import MapWindow
from eos_mirror.core.offset_map import MapTail, OffsetMap

PER_SEGMENT = 10


def written(segments: int) -> tuple[list[bytes], MapTail]:
    """Return a map of transactions with one record and one marker each."""
    tail, encoded, downstream = MapTail.empty(0), [], 0
    for upstream in range(segments * PER_SEGMENT + 3):
        tail.add([(upstream, 1)], downstream)
        downstream += 2
        if tail.commits == PER_SEGMENT:
            encoded.append(tail.spill()[1])
    return encoded, tail


@pytest.mark.parametrize("lowest", [0, 1, 9, 10, 777, 1_999, 2_000, 2_002])
def test_a_window_translates_from_the_lowest_offset_on(lowest: int) -> None:
    """From its lowest offset, a window translates like the whole map, without needless segments."""
    encoded, tail = written(200)
    whole, window = MapWindow(0), MapWindow(lowest)
    for number, data in enumerate(encoded):
        whole.put(number, data)
        window.put(number, data)
    window.trim()
    full, part = OffsetMap(whole.segments(), tail), OffsetMap(window.segments(), tail)
    assert window.reaches(lowest, tail.upstream_start)
    for upstream in range(lowest, full.upstream_end + 1):
        assert (
            part.translate(upstream)
            == full.translate(upstream)
            == 2 * upstream - (1 if upstream == full.upstream_end else 0)
        )
    assert len(window) <= max(1, 200 - lowest // PER_SEGMENT)


def test_what_was_forgotten_is_known_to_be() -> None:
    """An offset before the window requires reading the map again; one in the tail does not."""
    encoded, tail = written(200)
    window = MapWindow(1_500)
    for number, data in enumerate(encoded):
        window.put(number, data)
    window.trim()
    assert window.reaches(1_500, tail.upstream_start)
    assert not window.reaches(1_499, tail.upstream_start)
    window.lowest = None
    window.trim()
    assert len(window) == 0
    assert not window.reaches(1_999, tail.upstream_start)
    assert window.reaches(2_000, tail.upstream_start)


def test_a_window_that_forgot_nothing_reaches_everything() -> None:
    """A complete window reaches every offset, even if segments were deleted on the target."""
    encoded, tail = written(5)
    window = MapWindow(0)
    for number, data in enumerate(encoded):
        window.put(number, data)
    window.put(0, None)
    assert window.reaches(0, tail.upstream_start)


def test_a_window_stays_small_while_a_long_map_is_read() -> None:
    """While a long map is read, a window never holds many segments."""
    encoded, _ = written(1_000)
    window = MapWindow(9_990)
    peak = 0
    for number, data in enumerate(encoded):
        window.put(number, data)
        peak = max(peak, len(window))
    assert peak <= 65
