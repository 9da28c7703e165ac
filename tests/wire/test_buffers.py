"""Memory of large answers is used again, and never while anything refers to it."""

import pytest

from eos_mirror.wire.buffers import KEPT, LEAST_BYTES, MOST_BYTES, Buffers

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

    others = [buffers.of(SIZE) for _ in range(KEPT + 2)]
    for one in others:
        one[:] = bytes(SIZE)

    assert bytes(batch) == b"x" * 100


@pytest.mark.parametrize("size", [10, MOST_BYTES + 1])
def test_small_and_huge_answers_have_memory_of_their_own(size: int) -> None:
    """Nothing is kept for them."""
    buffers = Buffers()
    buffers.of(size)[0] = 7

    assert buffers.of(size)[0] == 0
