"""What a message handler makes of a run: pieces in order, with the offsets of their records."""

from collections.abc import Callable, Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.handlers import MOST_COPIES, HandledRun, Message, handled
from eos_mirror.core.records import DecodedRun, Stretch, TopicPartition

Handle = Callable[[Message], Iterable[Message]]


class By:
    """A handler that calls a function."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def handle(self, message: Message) -> Iterable[Message]:
        """Return what the function returns."""
        return self._handle(message)


def a_run(count: int, *, first: int = 10) -> DecodedRun:
    """Return a run of numbered records."""
    numbers = range(first, first + count)
    return DecodedRun(
        partition=TopicPartition("orders", 3),
        offsets=list(numbers),
        timestamps=[1_000 + n for n in numbers],
        keys=[b"k%d" % n for n in numbers],
        values=[b"v%d" % n for n in numbers],
        headers=[None if n % 2 else [("h", b"%d" % n)] for n in numbers],
        leader_epoch=4,
        size_bytes=0,
    )


def times(counts: dict[int, int]) -> Handle:
    """Return a handler that makes as many copies of each offset."""

    def handle(message: Message) -> Iterator[Message]:
        for copy in range(counts.get(message.offset, 1)):
            yield message._replace(value=b"%d.%d" % (message.offset, copy))

    return handle


def pieces(handle: Handle, count: int = 4) -> list[HandledRun]:
    """Return what a handler makes of a run."""
    found = list(handled(By(handle), a_run(count)))
    assert all(isinstance(one, HandledRun) for one in found)
    return found  # type: ignore[return-value]


def test_a_handler_sees_the_record_as_it_is() -> None:
    """The copies have what it returns, and the partition of the record."""
    seen: list[Message] = []

    def handle(message: Message) -> list[Message]:
        seen.append(message)
        return [message]

    (run,) = pieces(handle, 2)

    assert seen[0] == Message("orders", 3, 10, 1_010, b"k10", b"v10", [("h", b"10")])
    assert seen[1].headers == []
    whole = a_run(2)
    assert (run.offsets, run.timestamps, run.keys) == (whole.offsets, whole.timestamps, whole.keys)
    assert (run.values, run.headers) == (whole.values, whole.headers)
    assert (run.partition, run.leader_epoch) == (whole.partition, 4)


def test_copies_have_the_offset_of_their_record() -> None:
    """A record without copies is a hole."""
    (run,) = pieces(times({10: 2, 11: 0, 13: 3}))

    assert run.offsets == [10, 10, 12, 13, 13, 13]
    assert run.values == [b"10.0", b"10.1", b"12.0", b"13.0", b"13.1", b"13.2"]
    assert run.stretches() == [Stretch(10, 1, 2), Stretch(12, 1, 1), Stretch(13, 1, 3)]
    assert run.next_offset == 14


def test_neighbours_with_as_many_copies_are_one_stretch() -> None:
    """A handler that doubles everything costs no more room in the map than none."""
    (run,) = pieces(times(dict.fromkeys(range(10, 14), 2)))

    assert run.stretches() == [Stretch(10, 4, 2)]


@pytest.mark.parametrize("counts", [{13: 0}, dict.fromkeys(range(10, 14), 0)])
def test_the_epoch_is_unknown_without_the_last_record(counts: dict[int, int]) -> None:
    """As after any other selection of records."""
    assert all(run.leader_epoch is None for run in pieces(times(counts)))


def test_a_record_for_which_it_fails_is_a_piece_of_its_own() -> None:
    """The record is unchanged, and those before and after it are handled."""

    def handle(message: Message) -> list[Message]:
        if message.offset == 12:
            raise KeyError("amount")
        return [message]

    before, failed, after = pieces(handle)

    assert (before.offsets, failed.offsets, after.offsets) == ([10, 11], [12], [13])
    assert (before.failure, failed.failure, after.failure) == ("", "KeyError: 'amount'", "")
    assert (failed.values, failed.headers) == ([b"v12"], [[("h", b"12")]])


@pytest.mark.parametrize(
    ("handle", "why"),
    [
        (lambda _: ["no message"], "TypeError: a str is no Message"),
        (lambda _: None, "TypeError: 'NoneType' object is not iterable"),
        (lambda m: [m._replace(value="text")], "TypeError: the value of a copy is a str"),
        (lambda m: [m._replace(key=7)], "TypeError: the key of a copy is a int"),
        (lambda m: [m._replace(timestamp=1.5)], "ValueError: the timestamp of a copy is 1.5"),
        (lambda m: [m._replace(timestamp=0)], "ValueError: the timestamp of a copy is 0"),
        (lambda m: [m._replace(timestamp=2**63)], "ValueError: the timestamp of a copy is"),
        (lambda m: [m._replace(headers=[("\0", None)])], "ValueError: the name of a header"),
        (lambda m: [m._replace(headers=[("\ud800", None)])], "ValueError: the name of a header"),
        (lambda m: [m._replace(headers=[("a", 1)])], "TypeError: a header of a copy"),
        (lambda m: [m] * (MOST_COPIES + 1), "ValueError: more than 1000 copies of one record"),
    ],
)
def test_what_is_no_record_is_a_failure(handle: Handle, why: str) -> None:
    """The reason says what the handler returned; nothing of it is copied."""
    (run,) = pieces(handle, 1)

    assert run.failure.startswith(why)
    assert run.values == [b"v10"]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.integers(0, 40))
def test_copies_of_one_record_stay_together(counts: list[int], count: int) -> None:
    """Where a run is cut, and what is refused with a copy."""
    found = pieces(times(dict(enumerate(counts, 10))), len(counts))
    for run in found:
        if 0 < count < run.count:
            cut = run.whole(count)
            assert cut > 0
            assert cut == run.count or run.offsets[cut - 1] != run.offsets[cut]
            assert cut <= count or set(run.offsets[:cut]) == {run.offsets[0]}
            start, stop = run.siblings(count, count + 1)
            assert {run.offsets[i] for i in range(start, stop)} == {run.offsets[count]}
            assert run.offsets.count(run.offsets[count]) == stop - start


@pytest.mark.parametrize("headers", [(("a", b"1"),), [["a", b"1"]], iter([("a", b"1")])])
def test_headers_may_be_any_pairs(headers: Iterable[tuple[str, bytes]]) -> None:
    """The client needs a list of tuples; the user need not know."""
    (run,) = pieces(lambda m: [m._replace(headers=headers)], 1)  # type: ignore[arg-type]

    assert run.headers == [[("a", b"1")]]


def test_the_text_of_a_failure_is_short_and_can_be_written() -> None:
    """It is the user's: it may be long, or have line breaks and characters that are no text."""

    def handle(_: Message) -> list[Message]:
        raise ValueError("two\nlines \ud800 " + "x" * 5_000)

    (run,) = pieces(handle, 1)

    assert run.failure.startswith("ValueError: two lines \\ud800 xxx")
    assert len(run.failure.encode()) <= 310
