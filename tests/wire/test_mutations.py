"""Bytes that something changed lead to an error of ours, or to the right records."""

import random
import time
from collections.abc import Iterator

import pytest

from eos_mirror.wire.batches import fetched_batches
from eos_mirror.wire.codecs import CODECS
from eos_mirror.wire.errors import Malformed
from eos_mirror.wire.own_records import Record
from eos_mirror.wire.records import decoded
from tests.wire import java_batches as java
from tests.wire.examples import (
    NOW_MS,
    PARTITION,
    Row,
    answer,
    batch_of,
    plain_rows,
    rows_in,
    sealed,
)

ODD: Row = (NOW_MS, None, b"", [("\udcff", b"1"), ("", None)])
LIMIT_BYTES = 1 << 20
Outcome = tuple[list[Record], int]


def originals() -> dict[str, memoryview]:
    """Return answers of a broker: every codec, old formats, markers and odd keys."""
    answers = {
        name: answer(
            batch_of([ODD, *plain_rows(4)][codec % 2 :], base_offset=40, codec=codec),
            batch_of(plain_rows(3), base_offset=60, codec=codec),
        )
        for name, codec in CODECS.items()
    }
    answers |= {f"format {magic} {name}": memoryview(java.BATCHES[magic, name])
                for magic, name in java.BATCHES if magic < 2}  # fmt: skip
    last = batch_of(plain_rows(2), base_offset=60)
    answers["marker"] = memoryview(java.ABORT_MARKER + bytes(last.view))
    return answers


def read(data: memoryview) -> Outcome | None:
    """Return the records of an answer and the next position; None if it is refused."""
    try:
        fetched = fetched_batches(data, next_offset=0, aborted=[(9, 0)])
        run = decoded(PARTITION, fetched.batches, next_offset=0, limit_bytes=LIMIT_BYTES)
    except Malformed:
        return None
    return [] if run is None else rows_in(run), fetched.next_offset


def starts_in(data: memoryview) -> Iterator[int]:
    """Yield where each batch begins."""
    at = 0
    while at < len(data):
        yield at
        at += 12 + int.from_bytes(data[at + 8 : at + 12])


def unprotected(data: memoryview) -> set[int]:
    """Return the indices of base offsets and leader epochs: no checksum covers them."""
    return {
        start + i
        for start in starts_in(data)
        for i in [*range(8), *(range(12, 16) if data[16] == 2 else ())]
    }


def contents(records: list[Record]) -> list[tuple[object, ...]]:
    """Return records without their offsets."""
    return [record[1:] for record in records]


def single_changes(data: memoryview) -> Iterator[tuple[int, bytearray]]:
    """Yield every byte changed in eight ways."""
    for at in range(len(data)):
        for flip in (0x01, 0x02, 0x08, 0x10, 0x40, 0x80, 0x7F, 0xFF):
            changed = bytearray(data)
            changed[at] ^= flip
            yield at, changed


@pytest.mark.parametrize("name", originals())
def test_no_changed_byte_changes_or_hides_a_record(name: str) -> None:
    """The result is refused, or that of an answer which was truncated between two batches."""
    original = originals()[name]
    allowed = [read(original[:end]) for end in [*starts_in(original), len(original)]]
    free = unprotected(original)
    complete = contents(allowed[-1][0]) if allowed[-1] else []

    for at, data in single_changes(original):
        found = read(memoryview(data))

        if at not in free:
            assert found is None or found in allowed, f"byte {at} of {name}"
        elif found is not None and complete:
            assert contents(found[0]) == complete[: len(found[0])], f"byte {at} of {name}"


@pytest.mark.parametrize("name", [*CODECS, "marker"])
def test_changes_with_a_right_checksum_never_end_otherwise(name: str) -> None:
    """What a hostile producer can write is decoded, or refused with an error of ours."""
    chosen, count, refused = random.Random(name), 0, 0
    batch = bytearray(originals()[name])
    end = 12 + int.from_bytes(batch[8:12])
    ends = time.monotonic() + 60

    while count < 4000:
        data = bytearray(batch[:end])
        for _ in range(chosen.choice((1, 1, 2, 5))):
            data[chosen.randrange(17, end)] = chosen.choice((0, 1, 0x7F, 0x80, 0xFF))
        if chosen.random() < 0.2:
            data = data[: chosen.randrange(61, end)] + chosen.randbytes(chosen.randrange(20))
            data[8:12] = (len(data) - 12).to_bytes(4)
        found = read(sealed(data))
        refused += found is None
        count += 1
        assert time.monotonic() < ends, "an input took too long"

    assert 0 < refused < count, "the inputs were all alike"


def test_noise_is_refused_or_ignored() -> None:
    """Random bytes are never taken for records."""
    chosen = random.Random(5)
    for _ in range(3000):
        data = bytearray(chosen.randbytes(chosen.randrange(200)))
        if len(data) > 16:
            data[8:12] = chosen.choice((len(data) - 12, 14, 22, 49, 100)).to_bytes(4, signed=True)
            data[16] = chosen.randrange(3)

        found = read(memoryview(data))
        assert found is None or not found[0]
