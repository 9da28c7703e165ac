"""
The digest of a record, and of a sequence of records, by which a proof compares two logs.

This is a contract, version 1. docs/digest.md describes it bit by bit with test vectors, so that
other programs can check our folds, and we can check theirs.
"""

import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import repeat
from operator import mul
from struct import Struct
from typing import Final

from eos_mirror.core.records import Headers

VERSION: Final = 1
PRIME: Final = 2**127 - 1
"""Modulus of the fold, a Mersenne prime."""

_NULL: Final = -1

_prologue = Struct(">BBqiii").pack
_header = Struct(">ii").pack
_update = type(sha256()).update
_digest_of = type(sha256()).digest
_number = int.from_bytes  # big-endian


def encode_records(
    timestamps: Sequence[tuple[int, int]],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    headers: Sequence[Headers | None],
) -> list[list[bytes]]:
    """
    Encode records as parallel columns.

    The joined columns of a record are a byte string that only equal records have.

    Args:
        timestamps: Type (0 none, 1 create time, 2 log append time) and milliseconds since the
            epoch (-1 is none), as a message has them.
        headers: In order; None is the same as no headers, as on the wire.
    """
    if not timestamps:
        return [[]]
    heads = map(
        _prologue,
        repeat(VERSION),
        *zip(*timestamps, strict=True),
        [_NULL if key is None else len(key) for key in keys],
        [_NULL if value is None else len(value) for value in values],
        [len(of_one) if of_one else 0 for of_one in headers],
    )
    begun = list(map(b"".join, zip(heads, [key or b"" for key in keys], strict=True)))
    columns = [begun, [value or b"" for value in values]]
    if any(headers):
        columns.append([_encode_headers(of_one) if of_one else b"" for of_one in headers])
    return columns


def _encode_headers(headers: Headers) -> bytes:
    parts = []
    for name, value in headers:
        encoded = name.encode()
        parts += [_header(len(encoded), _NULL if value is None else len(value)), encoded]
        parts.append(value or b"")
    return b"".join(parts)


def digest_records(encoded: Sequence[Sequence[bytes]]) -> list[bytes]:
    """
    Return the SHA-256 of each record. Processors compute it faster than hashes built for speed.

    Args:
        encoded: Columns of `encode_records`. They are not joined, because copying a value costs
            half as much as hashing it.
    """
    first, *others = encoded
    hashes = list(map(sha256, first))
    for column in others:
        deque(map(_update, hashes, column), 0)
    return list(map(_digest_of, hashes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """
    A hash of a sequence of records.

    If two sequences have the same fold, under a base that was unknown when they were written, they
    are equal, except for a chance of n / 2^127.

    Attributes:
        count: Number of records.
        value: Below 2^127 - 1.
    """

    count: int = 0
    value: int = 0


def random_base() -> int:
    """Return a random base for one proof. A guessable base would let different logs agree."""
    return 2 + secrets.randbelow(PRIME - 3)


class Folder:
    """
    Folds digests under one base, and joins folds: fold(a + b) = join(fold(a), fold(b)).

    The fold of h1 ... hn is the sum of h_i * base^(n - i), modulo 2^127 - 1.
    """

    def __init__(self, base: int) -> None:
        self._base = base
        self._powers = [1]

    def fold(self, digests: Sequence[bytes]) -> Fold:
        """Fold a short sequence; use `join` for long ones."""
        count = len(digests)
        while len(self._powers) < count:
            self._powers.append(self._powers[-1] * self._base % PRIME)
        products = map(mul, map(_number, reversed(digests)), self._powers)
        return Fold(count=count, value=sum(products) % PRIME)

    def join(self, first: Fold, then: Fold) -> Fold:
        """Return the fold of one sequence followed by the other."""
        shifted = first.value * pow(self._base, then.count, PRIME)
        return Fold(count=first.count + then.count, value=(shifted + then.value) % PRIME)
