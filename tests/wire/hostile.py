"""Answers of a broker, and what a hostile network makes of them."""

import random
from typing import Any

from eos_mirror.wire.codec import Field, uvarint
from eos_mirror.wire.messages import Api

WHOLE = ("int8", "int16", "int32", "int64")
LENGTHS = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80" * 4)


def an_answer(api: Api, chosen: random.Random) -> bytes:
    """Return an answer in which every array has elements."""
    return api.answer.encode(filled(api.answer.fields, chosen))


def filled(fields: list[Field], chosen: random.Random) -> dict[str, Any]:
    """Return values for all fields."""
    return {one.name: fill(one, chosen) for one in fields}


def fill(one: Field, chosen: random.Random) -> Any:
    """Return a value."""
    if isinstance(one.kind, list):
        if not one.is_array:
            return filled(one.kind, chosen)
        count = chosen.randrange(1, 4)
        if one.kind[0].name:
            return [filled(one.kind, chosen) for _ in range(count)]
        return [fill(one.kind[0], chosen) for _ in range(count)]
    if one.kind == "bool":
        return chosen.random() < 0.5
    if one.kind in WHOLE:
        return chosen.randrange(100)
    size = 16 if one.kind == "uuid" else chosen.randrange(1, 20)
    return "t" * size if one.kind == "string" else chosen.randbytes(size)


def mutated(data: bytes, chosen: random.Random) -> bytes:
    """Return bytes that something changed: flipped, cut, inserted, or a length that is huge."""
    out = bytearray(data)
    for _ in range(chosen.choice((1, 1, 1, 2, 4))):
        at = chosen.randrange(len(out) + 1) if out else 0
        how = chosen.randrange(5)
        if how == 0 and at < len(out):
            out[at] ^= 1 << chosen.randrange(8)
        elif how == 1:
            del out[at:]
        elif how == 2:
            out[at:at] = chosen.randbytes(chosen.randrange(1, 9))
        elif how == 3:
            huge = chosen.choice((2**31 - 1, 2**31, 2**32 - 1, 2**34, 1_000_000))
            out[at : at + 1] = uvarint(huge)
        else:
            out[at : at + 4] = chosen.choice(
                (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80" * 4)
            )
    return bytes(out)
