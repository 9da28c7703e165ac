"""Faults that a mirror could have, one for each partition; `verify` must find each of them."""

from typing import Any

AT, FAR = 777, 2_777
COLUMNS = ("offsets", "timestamps", "keys", "values", "headers")
CONTENTS = COLUMNS[1:]


def drop(run: Any, at: int) -> None:
    """Lose a record."""
    for column in COLUMNS:
        del getattr(run, column)[at]


def swap_neighbours(run: Any, at: int) -> None:
    """Exchange two records; their chunk must hold both."""
    for column in CONTENTS:
        values = getattr(run, column)
        values[at], values[at + 1] = values[at + 1], values[at]


def put(run: Any, at: int, number: int) -> None:
    """Write another record of the partition in place of this one."""
    for column, content in zip(CONTENTS, contents(run.partition.partition, number), strict=True):
        getattr(run, column)[at] = content


def contents(partition: int, number: int) -> tuple[Any, ...]:
    """Return the record that the test writes: timestamp, key, value, headers."""
    headers = [("a", b"1"), ("b", b"%d" % number)]
    return (
        1_700_000_000_000 + number,
        None if partition == EMPTY_KEY else b"k%d" % number,
        b"value %d of %d" % (number, partition),
        headers,
    )


def change_value(run: Any, at: int) -> None:
    """Change one byte of a value."""
    run.values[at] = run.values[at][:-1] + b"!"


def empty_key(run: Any, at: int) -> None:
    """Replace a null key by an empty one."""
    run.keys[at] = b""


def change_header(run: Any, at: int) -> None:
    """Change the value of a header."""
    run.headers[at] = [("a", b"2"), run.headers[at][1]]


def turn_headers(run: Any, at: int) -> None:
    """Reverse the order of the headers."""
    run.headers[at] = run.headers[at][::-1]


def delay(run: Any, at: int) -> None:
    """Increase a timestamp by a millisecond."""
    run.timestamps[at] += 1


EXACT, MISSING, NEIGHBOURS, FAR_APART, VALUE, EMPTY_KEY, HEADER, ORDER, LATE = range(9)
DOUBLED, MISPLACED, STRANGER, LEFT_OUT = range(9, 13)
FAULTS = {
    (MISSING, AT): drop,
    (MISPLACED, AT): drop,
    (LEFT_OUT, AT): drop,
    (NEIGHBOURS, AT): swap_neighbours,
    (FAR_APART, AT): lambda run, at: put(run, at, FAR),
    (FAR_APART, FAR): lambda run, at: put(run, at, AT),
    (VALUE, AT): change_value,
    (EMPTY_KEY, AT): empty_key,
    (HEADER, AT): change_header,
    (ORDER, AT): turn_headers,
    (LATE, AT): delay,
}
"""The faults by partition and upstream offset."""
