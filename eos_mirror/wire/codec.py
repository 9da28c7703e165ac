"""
Encodes requests and decodes answers by tables of fields, in Kafka's own notation.

A table is a text such as `throttle_time_ms:int32 topics:[name:string partitions:[:int32]]`: arrays
are in brackets, structures in parentheses, and `name@0` is a tagged field. Every length is checked
against the bytes that are there, so a malformed answer is an error and nothing else.

Source: KIP-482 (flexible versions); Kafka's protocol guide.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from struct import Struct, error
from typing import Any, Final

from eos_mirror.wire.errors import Malformed

Fields = Mapping[str, Any]
"""The values of a message, by field."""

FIXED: Final = {
    "bool": Struct(">?"),
    "int8": Struct(">b"),
    "int16": Struct(">h"),
    "int32": Struct(">i"),
    "int64": Struct(">q"),
}
LENGTH, SHORT = FIXED["int32"], FIXED["int16"]
UUID_BYTES: Final = 16
VARINT_BITS: Final = 35
ONE_BYTE: Final = 0x7F
"""The largest varint of one byte."""
MOST_TAGS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Field:
    """
    One field of a message.

    Attributes:
        kind: Name of a plain type; or the fields of a structure, or of an array's elements. An
            array of a plain type has one element field without a name.
        tag: Number of a tagged field; None for the others.
    """

    name: str
    kind: "str | Fieldset"
    tag: int | None = None
    is_array: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """Neighbouring fields of fixed size, which are read and written together."""

    names: tuple[str, ...]
    struct: Struct


class Fieldset(list[Field]):
    """
    The fields of a message or of a structure.

    Attributes:
        steps: Those without tags, in order.
        tagged: The others.
        element: Of an array of a plain type; None if this is a structure.
    """

    def __init__(self, fields: Iterable[Field]) -> None:
        super().__init__(fields)
        self.steps = _steps([field for field in self if field.tag is None])
        self.tagged = [field for field in self if field.tag is not None]
        self.element = self[0] if self and not self[0].name else None


@dataclass(frozen=True, slots=True)
class Shape:
    """A message: its fields, and whether its versions are flexible (KIP-482)."""

    fields: Fieldset
    flexible: bool

    def encode(self, values: Fields) -> bytes:
        """Return the bytes of a message."""
        return b"".join(_written_fields(self.fields, values, self.flexible))

    def decode(self, data: memoryview, at: int = 0) -> dict[str, Any]:
        """
        Return the fields of a message. Bytes after it are ignored, as Kafka's clients do.

        Values of type `bytes` are views of `data`.

        Raises:
            Malformed: The bytes are not such a message.
        """
        try:
            return _read_fields(self.fields, data, at, self.flexible)[0]
        except (IndexError, error, UnicodeDecodeError) as exc:
            raise Malformed(str(exc)) from exc


def shape(text: str, *, flexible: bool = True) -> Shape:
    """Return the shape that a table of fields describes."""
    for mark in "[]()":
        text = text.replace(mark, f" {mark} ")
    return Shape(_parsed(text.split()), flexible)


def _parsed(words: list[str]) -> Fieldset:
    fields = []
    while words and words[0] not in "])":
        name, _, plain = words.pop(0).partition(":")
        name, _, tag = name.partition("@")
        kind: str | Fieldset = plain
        is_array = False
        if not plain:
            is_array = words.pop(0) == "["
            kind = _parsed(words)
            words.pop(0)
        fields.append(Field(name, kind, int(tag) if tag else None, is_array))
    return Fieldset(fields)


def _steps(fields: list[Field]) -> list[Row | Field]:
    steps: list[Row | Field] = []
    for is_fixed, some in groupby(fields, key=_is_fixed):
        if is_fixed:
            steps.append(_row(list(some)))
        else:
            steps += some
    return steps


def _is_fixed(field: Field) -> bool:
    return bool(field.name) and isinstance(field.kind, str) and field.kind in FIXED


def _row(fields: list[Field]) -> Row:
    formats = [FIXED[str(field.kind)].format.removeprefix(">") for field in fields]
    return Row(tuple(field.name for field in fields), Struct(">" + "".join(formats)))


# ---------------------------------------------------------------------- decoding


def read_uvarint(data: memoryview, at: int) -> tuple[int, int]:
    """Return an unsigned varint and where it ends."""
    value = shift = 0
    while shift < VARINT_BITS:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte <= ONE_BYTE:
            return value, at
        shift += 7
    raise Malformed("a varint of more than five bytes")


def _read_fields(
    fields: Fieldset, data: memoryview, at: int, flexible: bool
) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    for step in fields.steps:
        if isinstance(step, Row):
            found.update(zip(step.names, step.struct.unpack_from(data, at), strict=True))
            at += step.struct.size
        else:
            found[step.name], at = _read(step, data, at, flexible)
    if not flexible:
        return found, at
    return (found, at + 1) if not data[at] else _read_tagged(fields.tagged, found, data, at)


def _read_tagged(
    tagged: list[Field], found: dict[str, Any], data: memoryview, at: int
) -> tuple[dict[str, Any], int]:
    count, at = read_uvarint(data, at)
    if count > MOST_TAGS:
        raise Malformed(f"{count} tagged fields")
    for _ in range(count):
        tag, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        end = _end(data, at, size)
        for field in tagged:
            if field.tag == tag:
                found[field.name], _ = _read(field, data[:end], at, True)
        at = end
    return found, at


def _read(field: Field, data: memoryview, at: int, flexible: bool) -> tuple[Any, int]:
    kind = field.kind
    if isinstance(kind, Fieldset):
        read = _read_array if field.is_array else _read_fields
        return read(kind, data, at, flexible)
    fixed = FIXED.get(kind)
    if fixed is not None:
        return fixed.unpack_from(data, at)[0], at + fixed.size
    if kind == "uuid":
        end = _end(data, at, UUID_BYTES)
        return bytes(data[at:end]), end
    size, at = _read_size(data, at, flexible, short=kind == "string")
    if size < 0:
        return None, at
    end = _end(data, at, size)
    return (str(data[at:end], "utf-8") if kind == "string" else data[at:end]), end


def _read_array(
    elements: Fieldset, data: memoryview, at: int, flexible: bool
) -> tuple[list[Any], int]:
    count, at = _read_size(data, at, flexible)
    if count > len(data) - at:
        raise Malformed(f"an array of {count} elements in {len(data) - at} bytes")
    found: list[Any] = []
    plain = elements.element
    for _ in range(count):
        if plain is not None:
            item, at = _read(plain, data, at, flexible)
        else:
            item, at = _read_fields(elements, data, at, flexible)
        found.append(item)
    return found, at


def _read_size(
    data: memoryview, at: int, flexible: bool, *, short: bool = False
) -> tuple[int, int]:
    """Return the length of a string, of bytes, or of an array; -1 if it is null."""
    if flexible:
        byte = data[at]
        if byte <= ONE_BYTE:
            return byte - 1, at + 1
        size, at = read_uvarint(data, at)
        return size - 1, at
    number = SHORT if short else LENGTH
    size = number.unpack_from(data, at)[0]
    if size < -1:
        raise Malformed(f"a length of {size}")
    return size, at + number.size


def _end(data: memoryview, at: int, size: int) -> int:
    if size > len(data) - at:
        raise Malformed(f"{size} bytes where {len(data) - at} are left")
    return at + size


# ---------------------------------------------------------------------- encoding


def uvarint(value: int) -> bytes:
    """Return an unsigned varint."""
    out = bytearray()
    while value > ONE_BYTE:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _written_fields(fields: Fieldset, values: Fields, flexible: bool) -> list[bytes]:
    parts = [
        step.struct.pack(*[values[name] for name in step.names])
        if isinstance(step, Row)
        else _written(step, values[step.name], flexible)
        for step in fields.steps
    ]
    if flexible:
        parts.append(_written_tagged(fields.tagged, values))
    return parts


def _written_tagged(tagged: list[Field], values: Fields) -> bytes:
    """Return the tagged fields that have a value."""
    given = [field for field in tagged if field.name in values]
    if not given:
        return b"\0"
    out = [uvarint(len(given))]
    for field in given:
        data = _written(field, values[field.name], True)
        out += (uvarint(field.tag or 0), uvarint(len(data)), data)
    return b"".join(out)


def _written(field: Field, value: Any, flexible: bool) -> bytes:
    kind = field.kind
    if isinstance(kind, Fieldset):
        if field.is_array:
            return _written_array(kind, value, flexible)
        return b"".join(_written_fields(kind, value, flexible))
    fixed = FIXED.get(kind)
    if fixed is not None:
        return fixed.pack(value)
    if kind == "uuid":
        return bytes(value)
    data = value.encode() if isinstance(value, str) else value
    size = -1 if data is None else len(data)
    return _written_size(size, flexible, short=kind == "string") + (data or b"")


def _written_array(elements: Fieldset, value: Sequence[Any] | None, flexible: bool) -> bytes:
    out = [_written_size(-1 if value is None else len(value), flexible)]
    plain = elements.element
    for item in value or ():
        if plain is not None:
            out.append(_written(plain, item, flexible))
        else:
            out += _written_fields(elements, item, flexible)
    return b"".join(out)


def _written_size(size: int, flexible: bool, *, short: bool = False) -> bytes:
    if flexible:
        return uvarint(size + 1)
    return (SHORT if short else LENGTH).pack(size)
