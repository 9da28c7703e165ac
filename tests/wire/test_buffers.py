"""Memory of large answers is used again, and never while anything refers to it."""

import pytest

from eos_mirror.wire.buffers import KEPT_BYTES, LEAST_BYTES, MOST_BYTES, Buffers

SIZE = 2 * LEAST_BYTES


def test_memory_is_used_again_when_no_view_of_it_is_left() -> None:
    """The next answer of the same size, or of a smaller one, lies in the same place."""
    buffers = Buffers()
    first = buffers.of(SIZE)
    first[0] = 7
    del first

    assert buffers.of(SIZE)[0] == 7
    assert len(buffers.of(SIZE - 1)) == SIZE - 1


def test_memory_with_a_view_is_left_alone() -> None:
    """A batch that waits to be acknowledged refers to a part of an answer."""
    buffers = Buffers()
    first = buffers.of(SIZE)
    batch = first[100:200]
    batch[:] = b"x" * 100
    del first

    others = [buffers.of(SIZE) for _ in range(KEPT_BYTES // SIZE + 2)]
    for one in others:
        one[:] = bytes(SIZE)

    assert bytes(batch) == b"x" * 100


def test_all_memory_that_is_in_use_together_is_used_again() -> None:
    """Several answers wait to be acknowledged, while one is handled and one arrives."""
    buffers = Buffers()
    some = [buffers.of(MOST_BYTES // 4) for _ in range(KEPT_BYTES // (MOST_BYTES // 4))]
    for one in some:
        one[0] = 7
    count = len(some)
    del some, one

    again = [buffers.of(MOST_BYTES // 4) for _ in range(count)]

    assert [one[0] for one in again] == [7] * count


def test_no_more_is_kept_than_the_limit() -> None:
    """What does not fit is given back to the system, the oldest first."""
    buffers = Buffers()
    some = [buffers.of(MOST_BYTES) for _ in range(KEPT_BYTES // MOST_BYTES + 1)]
    for one in some:
        one[0] = 7
    count = len(some)
    del some, one

    again = [buffers.of(MOST_BYTES) for _ in range(count)]

    assert [one[0] for one in again] == [7] * (count - 1) + [0]


@pytest.mark.parametrize("size", [10, MOST_BYTES + 1])
def test_small_and_huge_answers_have_memory_of_their_own(size: int) -> None:
    """Nothing is kept for them."""
    buffers = Buffers()
    buffers.of(size)[0] = 7

    assert buffers.of(size)[0] == 0
