"""
The JSON form of the messages between the driver and its tasks.

A message is an object with the fields of its dataclass, and `version`. A process refuses a message
with another version or an unknown field: on a Spark cluster, workers may run another release than
the driver.
"""

import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.spread import Spread
from eos_mirror.errors import FatalError

VERSION = 1
"""Incremented when a message changes."""

M = TypeVar("M")


def encode(message: object) -> dict[str, Any]:
    """Return a message as JSON-able values. Secrets are included."""
    return {"version": VERSION, **_encoded_fields(message)}


def decode(kind: type[M], data: Mapping[str, Any]) -> M:
    """
    Return the message from the data that `encode` returned.

    Args:
        kind: Class of the message.

    Raises:
        FatalError: It has another version, or is not such a message. Install the same release
            everywhere.
    """
    version = data.get("version")
    if version != VERSION:
        raise FatalError(
            f"{kind.__name__}: message version {version!r}, this process speaks {VERSION}: the "
            f"driver and its workers run different releases of eos_mirror. Install one everywhere."
        )
    try:
        found: M = _decoded(kind, {name: data[name] for name in data if name != "version"})
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise FatalError(f"{kind.__name__}: not such a message: {exc}") from exc
    return found


def _encoded_fields(message: Any) -> dict[str, Any]:
    return {one.name: _encoded(getattr(message, one.name)) for one in fields(message)}


def _encoded(value: Any) -> Any:  # noqa: PLR0911 (one line for each kind of value)
    if isinstance(value, TopicPartition):
        return str(value)
    if isinstance(value, Spread):
        return list(value.encode())
    if isinstance(value, timedelta):
        return value.total_seconds()
    if is_dataclass(value):
        return _encoded_fields(value)
    if isinstance(value, Mapping):
        return {str(key): _encoded(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return [_encoded(one) for one in value]
    return value


def _decoded(kind: Any, value: Any) -> Any:  # noqa: PLR0911 (one line for each kind of value)
    if kind is Any:
        return value
    if get_origin(kind) in (Union, types.UnionType):
        (inner,) = (one for one in get_args(kind) if one is not type(None))
        return None if value is None else _decoded(inner, value)
    if get_origin(kind) is tuple:
        return tuple(_decoded(get_args(kind)[0], one) for one in value)
    if isinstance(get_origin(kind), type) and issubclass(get_origin(kind), Mapping):
        key, inner = get_args(kind)
        return {_decoded(key, name): _decoded(inner, one) for name, one in value.items()}
    if kind is TopicPartition:
        topic, _, partition = value.rpartition("-")
        return TopicPartition(topic, int(partition))
    if kind is Spread:
        return Spread.decode(value)
    if kind is timedelta:
        return timedelta(seconds=value)
    if is_dataclass(kind):
        return _decoded_fields(kind, value)
    if not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _decoded_fields(kind: Any, value: Mapping[str, Any]) -> Any:
    kinds = _kinds(kind)
    unknown = sorted(value.keys() - kinds.keys())
    if unknown:
        raise ValueError(f"unknown field {', '.join(unknown)}")
    return kind(**{name: _decoded(kinds[name], one) for name, one in value.items()})


@cache
def _kinds(kind: type) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)
