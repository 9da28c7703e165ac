"""The digest is a contract: the vectors of its page hold, and it distinguishes records."""

import json
import re
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.audit.digest import (
    PRIME,
    Fold,
    Folder,
    digest_records,
    encode_records,
    random_base,
)

PAGE = Path(__file__).parents[2] / "docs" / "digest.md"

BYTES = st.none() | st.binary(max_size=4)
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=2), BYTES), max_size=3)
STAMP = st.tuples(st.integers(0, 2), st.integers(-1, 5))
RECORD = st.tuples(STAMP, BYTES, BYTES, HEADERS)
BASE = st.integers(2, PRIME - 2)
DIGESTS = st.lists(st.binary(min_size=32, max_size=32), max_size=12)


def vectors() -> list[dict[str, Any]]:
    """Return the vectors in the JSON blocks of the page."""
    found = re.findall(r"^```json\n(.+?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [vector for block in found for vector in json.loads(block)]


def bytes_of(text: str | None) -> bytes | None:
    """Decode the hexadecimal notation of the page."""
    return None if text is None else bytes.fromhex(text)


def encode(record: tuple[Any, ...]) -> bytes:
    """Encode a single record."""
    timestamp, key, value, headers = record
    (pieces,) = zip(*encode_records([timestamp], [key], [value], [headers]), strict=True)
    return b"".join(pieces)


def digest(record: tuple[Any, ...]) -> bytes:
    """Digest a single record."""
    timestamp, key, value, headers = record
    (found,) = digest_records(encode_records([timestamp], [key], [value], [headers]))
    return found


@pytest.mark.parametrize("vector", [v for v in vectors() if "record" in v], ids=lambda v: v["name"])
def test_records_have_the_bytes_and_the_digest_of_the_page(vector: dict[str, Any]) -> None:
    """Our encoding and digest of a record are those of the page."""
    said = vector["record"]
    headers = [(name, bytes_of(value)) for name, value in said["headers"]]
    stamp = (said["timestamp_type"], said["timestamp"])
    record = (stamp, bytes_of(said["key"]), bytes_of(said["value"]), headers)
    assert encode(record).hex() == vector["encoded"]
    assert digest(record).hex() == vector["digest"]


@pytest.mark.parametrize("vector", [v for v in vectors() if "fold" in v], ids=lambda v: v["name"])
def test_sequences_have_the_fold_of_the_page(vector: dict[str, Any]) -> None:
    """Our fold of a sequence, with the base of the page, is that of the page."""
    folded = Folder(int(vector["base"])).fold([bytes.fromhex(d) for d in vector["digests"]])
    assert folded == Fold(count=len(vector["digests"]), value=int(vector["fold"]))


@given(RECORD, RECORD)
def test_records_that_differ_are_encoded_differently(one: Any, other: Any) -> None:
    """Different records have different encodings; null is not empty, and fields do not merge."""
    same = (*one[:3], one[3] or []) == (*other[:3], other[3] or [])
    assert (encode(one) == encode(other)) == same


@given(st.lists(RECORD, max_size=5))
def test_records_are_digested_alike_alone_and_in_company(records: list[Any]) -> None:
    """A digest is the SHA-256 of the encoding, and does not depend on the chunks of reading."""
    columns = [list(column) for column in zip(*records, strict=True)] or [[], [], [], []]
    together = digest_records(encode_records(*columns))
    assert together == [digest(record) for record in records]
    assert together == [sha256(encode(record)).digest() for record in records]


@given(BASE, DIGESTS, DIGESTS)
def test_folds_of_parts_join_to_the_fold_of_the_whole(
    base: int, one: list[bytes], other: list[bytes]
) -> None:
    """The folds of two parts join to the fold of the whole, so parts can be folded separately."""
    folder = Folder(base)
    assert folder.join(folder.fold(one), folder.fold(other)) == folder.fold(one + other)


@given(BASE, DIGESTS)
def test_the_fold_is_the_polynomial_of_the_page(base: int, digests: list[bytes]) -> None:
    """The fold is the polynomial of the page, computed plainly."""
    value = 0
    for digest in digests:
        value = (value * base + int.from_bytes(digest, "big")) % PRIME
    assert Folder(base).fold(digests) == Fold(count=len(digests), value=value)


@given(BASE, st.permutations([bytes([i]) * 32 for i in range(6)]))
def test_the_fold_sees_the_order(base: int, shuffled: list[bytes]) -> None:
    """The same records in another order have another fold."""
    ordered = sorted(shuffled)
    folder = Folder(base)
    assert (folder.fold(shuffled) == folder.fold(ordered)) == (shuffled == ordered)


def test_a_base_is_never_guessed() -> None:
    """Each proof has a random base of its own, in the range of the page."""
    bases = [random_base() for _ in range(100)]
    assert all(2 <= base <= PRIME - 2 for base in bases)
    assert all(one != other for one, other in pairwise(sorted(bases)))
