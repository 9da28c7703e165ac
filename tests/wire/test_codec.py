"""Messages of the lane, compared with kio, which is made from Kafka's own definitions."""

import dataclasses
import importlib
import io
import random
import re
import resource
import types
import typing
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings, strategies
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from eos_mirror.wire.codec import Field, Shape, shape, uvarint
from eos_mirror.wire.errors import Malformed
from eos_mirror.wire.messages import PRODUCE_9, PRODUCE_12, PRODUCE_13, Api
from eos_mirror.wire.produce_requests import produce_request
from tests.wire.examples import batch_of, plain_rows
from tests.wire.hostile import an_answer, mutated
from tests.wire.scripted_broker import APIS, PRODUCE_REQUESTS

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)
RANGES = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
CODES = [code.value for code in ErrorCode]
LABELS = {f"{api.name} {api.version}": api for api in APIS.values()}
MUTATIONS = 1_500
"""Of each answer; there are 16."""


def kio_class(api: Api, side: str) -> type:
    """Return kio's class of a request or an answer."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", api.name).lower()
    module = importlib.import_module(f"kio.schema.{name}.v{api.version}.{side}")
    found: type = getattr(module, f"{api.name}{side.capitalize()}")
    return found


def shape_of(api: Api, side: str) -> Shape:
    """Return the complete shape of a request or an answer."""
    if side == "response":
        return api.answer
    return PRODUCE_REQUESTS[api.version] if api.name == "Produce" else api.request


def pairs(fields: list[Field], entity: type) -> Iterator[tuple[Field, Any, Any]]:
    """Yield each of our fields with kio's field and its type; both have Kafka's order."""
    hints = typing.get_type_hints(entity)
    theirs: list[Any] = list(dataclasses.fields(entity))
    plain = [one for one in theirs if "tag" not in one.metadata]
    tagged = {one.metadata["tag"]: one for one in theirs if "tag" in one.metadata}
    assert len(plain) == sum(one.tag is None for one in fields), entity
    left = iter(plain)
    for one in fields:
        other = next(left) if one.tag is None else tagged[one.tag]
        yield one, other, hints[other.name]


def split(hint: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether it could be None."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        left = [one for one in typing.get_args(hint) if one is not type(None)]
        return left[0], True
    return hint, False


def values(fields: list[Field], entity: type) -> strategies.SearchStrategy[dict[str, Any]]:
    """Return messages that Kafka allows."""
    each = {one.name: value(one, other, hint) for one, other, hint in pairs(fields, entity)}
    tags = {one.name: each.pop(one.name) for one in fields if one.tag is not None}
    return strategies.fixed_dictionaries(each, optional=tags)


def value(one: Field, other: Any, hint: Any) -> strategies.SearchStrategy[Any]:
    """Return values of a field."""
    kind, nullable = split(hint)
    if isinstance(one.kind, list):
        found: strategies.SearchStrategy[Any] = (
            elements(one.kind, other, typing.get_args(kind)[0])
            if one.is_array
            else values(one.kind, kind)
        )
    else:
        found = plain(one.kind, other.metadata.get("kafka_type"))
        nullable = nullable and one.kind in {"string", "bytes"}
    return strategies.none() | found if nullable else found


def elements(kind: list[Field], other: Any, hint: Any) -> strategies.SearchStrategy[Any]:
    """Return arrays."""
    if kind[0].name:
        return strategies.lists(values(kind, hint), max_size=3)
    return strategies.lists(plain(kind[0].kind, other.metadata["kafka_type"]), max_size=3)


def plain(kind: Any, kafka_type: str | None) -> strategies.SearchStrategy[Any]:
    """Return values of a plain type."""
    if kafka_type == "error_code":
        return strategies.sampled_from(CODES)
    if kafka_type == "datetime_i64":
        return strategies.just(-1) | strategies.integers(0, 2**42)
    if kafka_type == "timedelta_i64":
        return strategies.integers(0, 2**42)
    if kind in RANGES:
        return strategies.integers(-(2 ** RANGES[kind]), 2 ** RANGES[kind] - 1)
    return {
        "bool": strategies.booleans(),
        "uuid": strategies.binary(min_size=16, max_size=16),
        "string": strategies.text(max_size=20),
        "bytes": strategies.binary(max_size=200),
    }[kind]


def leaves(fields: list[Field], ours: Mapping[str, Any], entity: Any) -> None:
    """Assert that kio read what we wrote."""
    for one, other, _ in pairs(fields, type(entity)):
        if one.tag is None or one.name in ours:
            compare(one, ours[one.name], getattr(entity, other.name))


def compare(one: Field, mine: Any, theirs: Any) -> None:
    """Assert that a value is the same."""
    if mine is None or not isinstance(one.kind, list):
        assert unwrapped(theirs, one.kind) == mine, one
    elif not one.is_array:
        leaves(one.kind, mine, theirs)
    else:
        assert len(mine) == len(theirs)
        for own, other in zip(mine, theirs, strict=True):
            if one.kind[0].name:
                leaves(one.kind, own, other)
            else:
                assert unwrapped(other, one.kind[0].kind) == own


def unwrapped(theirs: Any, kind: Any) -> Any:
    """Return the number, text or bytes in a value of kio."""
    if theirs is None:
        return {"uuid": bytes(16), "int64": -1}.get(kind) if isinstance(kind, str) else None
    if isinstance(theirs, timedelta):
        return theirs // MS
    if isinstance(theirs, datetime):
        return (theirs - EPOCH) // MS
    if isinstance(theirs, uuid.UUID):
        return theirs.bytes
    return theirs.value if isinstance(theirs, ErrorCode) else theirs


@pytest.mark.parametrize("side", ["request", "response"])
@pytest.mark.parametrize("label", LABELS)
@settings(max_examples=30)
@given(data=strategies.data())
def test_kafkas_definition_has_the_same_bytes_and_values(
    label: str, side: str, data: strategies.DataObject
) -> None:
    """Kio reads every message as it was meant, writes the same bytes, and we read them."""
    api = LABELS[label]
    kind, entity = shape_of(api, side), kio_class(api, side)
    message = data.draw(values(kind.fields, entity))

    encoded = kind.encode(message)
    read: Any = entity_reader(entity)
    theirs, size = read(encoded, 0)
    assert size == len(encoded)
    leaves(kind.fields, message, theirs)

    if not any(one.tag is not None for one in all_fields(kind.fields)):
        buffer = io.BytesIO()  # kio does not write a tagged field that has its default
        entity_writer(entity)(buffer, theirs)
        assert buffer.getvalue() == encoded
    assert kind.decode(memoryview(encoded)) == without_null_arrays(kind.fields, message)


def without_null_arrays(fields: list[Field], message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as it is read: an array that is null is empty."""
    found = dict(message)
    for one in fields:
        if isinstance(one.kind, list) and one.name in message:
            mine = message[one.name]
            if not one.is_array:
                found[one.name] = without_null_arrays(one.kind, mine)
            elif one.kind[0].name:
                found[one.name] = [without_null_arrays(one.kind, each) for each in mine or ()]
            else:
                found[one.name] = mine or []
    return found


def all_fields(fields: list[Field]) -> Iterator[Field]:
    """Yield the fields of a message, and of its structures."""
    for one in fields:
        yield one
        if isinstance(one.kind, list):
            yield from all_fields(one.kind)


@pytest.mark.parametrize("api", [PRODUCE_9, PRODUCE_12, PRODUCE_13], ids=lambda api: api.version)
def test_kio_reads_a_produce_request(api: Api) -> None:
    """Topics, partitions and batches of a Produce request are where Kafka expects them."""
    topics = {
        name: [(number, batch_of(plain_rows(3), base_offset=number)) for number in range(4)]
        for name in ("orders", "größe")
    }
    ids = {name: name.encode().ljust(16, b".") for name in topics}
    fields = {"transactional_id": "id", "acks": -1, "timeout_ms": 7_000}

    parts = produce_request(api, fields, topics, ids)
    read: Any = entity_reader(kio_class(api, "request"))
    theirs, _ = read(b"".join(parts), 0)

    found = {
        (getattr(topic, "topic_id", None) and topic.topic_id.bytes) or topic.name: {
            one.index: bytes(one.records) for one in topic.partition_data
        }
        for topic in theirs.topic_data
    }
    assert found == {
        ids[name] if api is PRODUCE_13 else name: {
            number: bytes(batch.view) for number, batch in batches
        }
        for name, batches in topics.items()
    }
    assert (theirs.transactional_id, theirs.acks, theirs.timeout // MS) == ("id", -1, 7_000)


# ---------------------------------------------------------------------- hostile answers


@pytest.mark.parametrize("label", LABELS)
def test_a_changed_answer_is_malformed_or_an_answer(label: str) -> None:
    """Nothing but Malformed leaves the decoder, and no length makes it allocate."""
    survives(LABELS[label], MUTATIONS, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("label", LABELS)
def test_many_changed_answers_are_malformed_or_answers(label: str) -> None:
    """The same, ten times as often, with other seeds."""
    for seed in range(2, 12):
        survives(LABELS[label], MUTATIONS, seed=seed)


def survives(api: Api, count: int, *, seed: int) -> None:
    """Decode changed answers, and check what comes of them."""
    chosen = random.Random(f"{api.name} {api.version} {seed}")
    outcomes: Counter[str] = Counter()
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(count):
        data = mutated(an_answer(api, chosen), chosen)
        try:
            found = api.answer.decode(memoryview(data))
        except Malformed:
            outcomes["malformed"] += 1
        else:
            outcomes["read"] += 1
            assert found.keys() >= {one.name for one in api.answer.fields if one.tag is None}
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert grown_kib < 32 << 10, "a length was trusted"
    assert min(outcomes["malformed"], outcomes["read"]) > count // 50, outcomes


ARRAYS = shape("all:[number:int32]"), shape("all:[number:int32]", flexible=False)


@pytest.mark.parametrize("count", [2**31 - 1, 2**31, 1_000_000])
def test_a_huge_array_is_refused_before_it_is_read(count: int) -> None:
    """The number of elements is checked against the bytes that are there."""
    flexible, plain_arrays = ARRAYS
    with pytest.raises(Malformed):
        flexible.decode(memoryview(uvarint(count + 1) + bytes(100)))
    with pytest.raises(Malformed):
        plain_arrays.decode(memoryview(count.to_bytes(4) + bytes(100)))
