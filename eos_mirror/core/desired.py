"""
What operators want of the topics of a flow, whether or not it runs.

Each record of the desired-state topic is an order about the topics that a pattern matches: what
should become of them, or how fast they may be mirrored. Its key names the pattern, and its value is
JSON, version 1 (docs/operations.md). Of the orders of one kind about one topic, the newest counts.
A limit on all topics is one that they share, and counts beside the limits of topics. A request
(`retry`, `reload`) is done once, by the run that mirrors when it comes. The run writes `applied`
when it has done what it read.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, TypeVar

from eos_mirror.core.throttles import Limit

VERSION: Final = 1
ALL: Final = ".*"
APPLIED_KEY: Final = "applied"
RELOAD_KEY: Final = "reload"
_TOPICS: Final = "topics:"
_LIMIT: Final = "limit:"

_O = TypeVar("_O")
_RETRY: Final = "retry:"


class Wanted(Enum):
    """What an operator wants of topics."""

    RUNNING = "running"
    PAUSED = "paused"
    """A task keeps the partitions, and reads nothing of them."""
    STOPPED = "stopped"
    """No task holds the partitions; their positions are kept."""


NOT_RUNNING: Final = (Wanted.PAUSED, Wanted.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """
    One order of an operator.

    Attributes:
        topics: A regular expression that matches whole names of source topics.
        at: UTC.
        by: User and host of the command.
        reason: In the words of the operator; may be empty.
    """

    topics: str
    wanted: Wanted
    at: datetime
    by: str
    reason: str = ""

    def __str__(self) -> str:
        return _signed(self.wanted.value, self)

    @property
    def key(self) -> str:
        """Key of the record."""
        return f"{_TOPICS}{self.topics}"

    def encode(self) -> str:
        """Return the value of the record."""
        fields = {
            "version": VERSION,
            "state": self.wanted.value,
            "at": self.at.astimezone(UTC).isoformat(timespec="milliseconds"),
            "by": self.by,
            "reason": self.reason,
        }
        return json.dumps(fields, separators=(",", ":"))


def decode_order(key: str, value: bytes) -> Order | None:
    """
    Return the order of a record; None if a later version wrote it, or it is none.

    Raises:
        ValueError: The record is damaged.
    """
    if not key.startswith(_TOPICS):
        return None
    body = _decoded(value)
    if body.get("version") != VERSION or body.get("state") not in {one.value for one in Wanted}:
        return None
    topics = _pattern(key.removeprefix(_TOPICS))
    return Order(
        topics=topics,
        wanted=Wanted(body["state"]),
        at=_time(key, body, value),
        by=str(body.get("by", "")),
        reason=str(body.get("reason", "")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOrder:
    """
    An order of an operator about how fast topics may be mirrored.

    Attributes:
        topics: A regular expression that matches whole names of source topics, each of which has
            the limit; `ALL`: the topics of the flow share it.
        limit: Without a value, it lifts an earlier limit.
        at: UTC.
        by: User and host of the command.
        reason: In the words of the operator; may be empty.
    """

    topics: str
    limit: Limit
    at: datetime
    by: str
    reason: str = ""

    def __str__(self) -> str:
        return _signed(str(self.limit), self)

    @property
    def key(self) -> str:
        """Key of the record."""
        return f"{_LIMIT}{self.topics}"

    @property
    def fields(self) -> dict[str, Any]:
        """What was ordered, as JSON-able values."""
        return {
            "bytes_per_second": self.limit.bytes_per_s,
            "records_per_second": self.limit.records_per_s,
            "at": self.at.astimezone(UTC).isoformat(timespec="milliseconds"),
            "by": self.by,
            "reason": self.reason,
        }

    def encode(self) -> str:
        """Return the value of the record."""
        return json.dumps({"version": VERSION, **self.fields}, separators=(",", ":"))


def decode_limit(key: str, value: bytes) -> LimitOrder | None:
    """
    Return the limit of a record; None if a later version wrote it, or it is none.

    Raises:
        ValueError: The record is damaged.
    """
    if not key.startswith(_LIMIT):
        return None
    body = _decoded(value)
    if body.get("version") != VERSION:
        return None
    topics = _pattern(key.removeprefix(_LIMIT))
    return LimitOrder(
        topics=topics,
        limit=Limit(
            bytes_per_s=_rate(body.get("bytes_per_second")),
            records_per_s=_rate(body.get("records_per_second")),
        ),
        at=_time(key, body, value),
        by=str(body.get("by", "")),
        reason=str(body.get("reason", "")),
    )


def _signed(what: str, order: Order | LimitOrder) -> str:
    """Return what was ordered, since when, by whom and why, for people."""
    why = f": {order.reason}" if order.reason else ""
    return f"{what} since {order.at:%Y-%m-%d %H:%M:%S} UTC by {order.by}{why}"


def _rate(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError(f"not a rate: {value!r}")
    return float(value)


def _time(key: str, body: Mapping[str, Any], value: bytes) -> datetime:
    try:
        return datetime.fromisoformat(str(body["at"]))
    except (KeyError, ValueError) as exc:
        raise ValueError(f"not an order: {key[:80]!r} {value[:80]!r}") from exc


def retry_key(topics: str) -> str:
    """Return the key of a request to try the stopped partitions of matching topics again."""
    return f"{_RETRY}{topics}"


@dataclass(frozen=True, slots=True)
class Request:
    """
    Something that a run does once.

    Attributes:
        retries: The pattern of topics whose stopped partitions are tried again; None: the run
            reads its configuration file.
    """

    retries: str | None


def request_of(key: str) -> Request | None:
    """
    Return the request that a record makes; None if its key is of another record.

    Raises:
        ValueError: The pattern is none.
    """
    if key == RELOAD_KEY:
        return Request(None)
    if not key.startswith(_RETRY):
        return None
    return Request(_pattern(key.removeprefix(_RETRY)))


def _pattern(topics: str) -> str:
    try:
        re.compile(topics)
    except re.error as exc:
        raise ValueError(f"not a pattern: {topics[:80]!r}: {exc}") from exc
    return topics


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """
    A run has done everything that was ordered before an offset of the desired-state topic.

    Attributes:
        through: That offset.
        partitions: How many partitions are paused or stopped now.
    """

    through: int
    partitions: int

    def encode(self) -> str:
        """Return the value of the record; its key is `APPLIED_KEY`."""
        fields = {"version": VERSION, "through": self.through, "partitions": self.partitions}
        return json.dumps(fields, separators=(",", ":"))


def decode_applied(value: bytes) -> Applied | None:
    """
    Return what a run reported; None if a later version wrote it.

    Raises:
        ValueError: The record is damaged.
    """
    body = _decoded(value)
    if body.get("version") != VERSION:
        return None
    try:
        return Applied(through=int(body["through"]), partitions=int(body["partitions"]))
    except (KeyError, TypeError, ValueError) as exc:
        raise ValueError(f"not a report: {value[:80]!r}") from exc


def _decoded(value: bytes) -> dict[str, Any]:
    try:
        body = json.loads(value)
    except ValueError as exc:
        raise ValueError(f"not JSON: {value[:80]!r}") from exc
    if not isinstance(body, dict):
        raise ValueError(f"not an object: {value[:80]!r}")  # noqa: TRY004 (a damaged record)
    return body


@dataclass(frozen=True, slots=True)
class DesiredState:
    """All orders that count, the oldest first, by key."""

    orders: Mapping[str, Order]
    limits: Mapping[str, LimitOrder] = field(default_factory=dict)

    def after(self, key: str, value: bytes | None) -> "DesiredState":
        """
        Return the state after one more record.

        Raises:
            ValueError: The record is damaged.
        """
        if key.startswith(_LIMIT):
            limits = _changed(self.limits, key, value, decode_limit)
            return self if limits is self.limits else replace(self, limits=limits)
        orders = _changed(self.orders, key, value, decode_order)
        return self if orders is self.orders else replace(self, orders=orders)

    def limited(self, topics: Iterable[str]) -> dict[str | None, LimitOrder]:
        """Return the limits that count: None has the one that all topics share; then by topic."""
        shared = self.limits.get(f"{_LIMIT}{ALL}")
        found: dict[str | None, LimitOrder] = {} if shared is None else {None: shared}
        orders = [one for one in reversed(list(self.limits.values())) if one.topics != ALL]
        for topic in sorted(topics) if orders else ():
            order = next((one for one in orders if re.fullmatch(one.topics, topic)), None)
            if order is not None:
                found[topic] = order
        return {topic: order for topic, order in found.items() if order.limit}

    def of(self, topic: str) -> Order | None:
        """Return the newest order about a topic; None if there is none."""
        for order in reversed(list(self.orders.values())):
            if re.fullmatch(order.topics, topic):
                return order
        return None

    def not_running(self, topics: Iterable[str]) -> dict[str, Order]:
        """Return the topics that are to be paused or stopped, sorted, with their orders."""
        found = ((topic, self.of(topic)) for topic in sorted(topics))
        return {
            topic: order
            for topic, order in found
            if order is not None and order.wanted is not Wanted.RUNNING
        }


def _changed(
    orders: Mapping[str, _O],
    key: str,
    value: bytes | None,
    decode: Callable[[str, bytes], _O | None],
) -> Mapping[str, _O]:
    order = None if value is None else decode(key, value)
    if order is None and (value is not None or key not in orders):
        return orders
    others = {one: kept for one, kept in orders.items() if one != key}
    return others if order is None else {**others, key: order}


NOTHING_ORDERED: Final = DesiredState({})
