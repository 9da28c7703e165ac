"""
Transforms of records: they drop a record, or change its headers. Pure functions.

They are Kafka Connect's transforms and predicates, as far as they work on bytes. A record becomes
one record or none, so the offset map stays exact: a dropped record is a gap in it, as a compacted
one is. Every reader of the source applies them again (a task after a restart, and `verify`), so
the result depends on the record and its topic alone.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from eos_mirror.core.records import Headers

TOMBSTONE: Final = "RecordIsTombstone"
HAS_HEADER: Final = "HasHeaderKey"
TOPIC_MATCHES: Final = "TopicNameMatches"
FILTER: Final = "Filter"
INSERT_HEADER: Final = "InsertHeader"
DROP_HEADERS: Final = "DropHeaders"

Step = Callable[[bytes | None, Headers], Headers | None]
"""Returns the headers of a record with this value and these headers; None drops the record."""

Holds = Callable[[bytes | None, Headers], bool]
"""Whether a predicate holds for a record with this value and these headers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """
    A condition on a record.

    Attributes:
        kind: Simple name of Connect's class.
        text: The name of the header, or the pattern of the remote topic; otherwise empty.
    """

    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """
    One transform of a flow.

    Attributes:
        kind: Simple name of Connect's class.
        headers: Names of the headers that it inserts or drops.
        value: Value of an inserted header.
        predicate: Applied only to records for which it holds; None: to all.
        negated: Applied only to records for which the predicate does not hold.
    """

    kind: str
    headers: tuple[str, ...] = ()
    value: str = ""
    predicate: Predicate | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """
    What is left of adjacent records.

    Attributes:
        indices: Of the records that are mirrored.
        headers: Of these records; None where a record has none.
    """

    indices: Sequence[int]
    headers: Sequence[Headers | None]


class Chain:
    """The transforms of one topic, in order. It has no state."""

    def __init__(self, transforms: Sequence[Transform], *, remote_topic: str) -> None:
        """
        Args:
            remote_topic: The topic of the copies: Connect's predicates see this name.
        """
        steps = (_step(one, remote_topic) for one in transforms)
        self._steps = [step for step in steps if step is not None]

    @property
    def is_empty(self) -> bool:
        """True if no record of the topic is changed."""
        return not self._steps

    def kept(self, values: Sequence[bytes | None], headers: Sequence[Headers | None]) -> Kept:
        """Apply the transforms to adjacent records, given as parallel columns."""
        indices, left = [], []
        for index, (value, carried) in enumerate(zip(values, headers, strict=True)):
            found = self._applied(value, carried or [])
            if found is not None:
                indices.append(index)
                left.append(found or None)
        return Kept(indices, left)

    def _applied(self, value: bytes | None, headers: Headers) -> Headers | None:
        for step in self._steps:
            found = step(value, headers)
            if found is None:
                return None
            headers = found
        return headers


def _step(transform: Transform, remote_topic: str) -> Step | None:
    """Return the step of a transform; None if it never applies to the topic."""
    act = _act(transform)
    predicate = transform.predicate
    if predicate is None:
        return act
    if predicate.kind == TOPIC_MATCHES:
        matches = re.compile(predicate.text, re.ASCII).fullmatch(remote_topic) is not None
        return act if matches is not transform.negated else None
    holds, negated = _holds(predicate), transform.negated
    return lambda value, headers: (
        act(value, headers) if holds(value, headers) is not negated else headers
    )


def _act(transform: Transform) -> Step:
    if transform.kind == INSERT_HEADER:
        inserted = [(name, transform.value.encode()) for name in transform.headers]
        return lambda _, headers: [*headers, *inserted]
    if transform.kind == DROP_HEADERS:
        dropped = frozenset(transform.headers)
        return lambda _, headers: [one for one in headers if one[0] not in dropped]
    return lambda _value, _headers: None


def _holds(predicate: Predicate) -> Holds:
    if predicate.kind == HAS_HEADER:
        name = predicate.text
        return lambda _, headers: any(one[0] == name for one in headers)
    return lambda value, _: value is None
