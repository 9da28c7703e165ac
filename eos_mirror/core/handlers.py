"""
Message handlers: a user's class that makes copies of a record, none, one or several.

A handler is a pure function of the record: a task applies it again after a restart, and `verify`
applies it to the source. The copies stay in the partition of the record: claims and positions
belong to partitions. Source: MirrorMaker 1's MirrorMakerMessageHandler (KIP-3).
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Final, NamedTuple, Protocol, cast

from eos_mirror.core.plugins import make
from eos_mirror.core.records import DecodedRun, Headers, Stretch
from eos_mirror.core.topic_limits import NO_TIMESTAMP

FAILED: Final = "MESSAGE_HANDLER"
"""Code of a record for which the handler raised an error. Kafka has no such code."""

ARGUMENTS: Final = "message.handler.args"
HANDLER_HAS: Final = ("handle",)
MOST_CHARS: Final = 300
"""Of an error of a handler: it stands in headers, events and the ledger."""

LATEST_MS: Final = 2**63 - 1
MOST_COPIES: Final = 1_000
"""Of one record: they are written in one transaction, and are one entry of the offset map."""


class Message(NamedTuple):
    """
    A record of the source, or a copy of it.

    Attributes:
        topic, partition, offset: Of the record on the source; those of a copy count for nothing.
        timestamp: Milliseconds since the epoch; -1: none.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class MessageHandler(Protocol):
    """What the class must have. The constructor gets a mapping; docs/plugins.md names its keys."""

    def handle(self, message: Message) -> Iterable[Message]:
        """Return the copies of a record, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSpec:
    """
    The handler of a flow.

    Attributes:
        path: `module.Class`.
        config: The argument of the constructor, as pairs.
    """

    path: str
    config: tuple[tuple[str, str], ...] = ()

    def make(self) -> MessageHandler:
        """
        Create the handler.

        Raises:
            ConfigError: The class cannot be used.
        """
        made: MessageHandler = make(self.path, dict(self.config), HANDLER_HAS)
        return made


@dataclass(slots=True, kw_only=True)
class HandledRun(DecodedRun):
    """
    Copies that a handler made of adjacent records. Those of one record have the same offset.

    Attributes:
        failure: Why the handler failed for its only record, which is unchanged; empty otherwise.
    """

    failure: str = ""  # type: ignore[misc] # of the class there: no cost for any other run

    def stretches(self) -> Sequence[Stretch]:
        """See `RecordRun`."""
        found: list[Stretch] = []
        for offset, copies in Counter(self.offsets).items():
            last = found[-1] if found else None
            if last is not None and (last.first + last.length, last.copies) == (offset, copies):
                found[-1] = last._replace(length=last.length + 1)
            else:
                found.append(Stretch(offset, 1, copies))
        return found

    def whole(self, count: int) -> int:
        """See `DecodedRun`: copies of one record stay together; at least one record is whole."""
        if not 0 < count < len(self.offsets):
            return count
        start = bisect_left(self.offsets, self.offsets[count])
        return start or bisect_right(self.offsets, self.offsets[0])

    def siblings(self, start: int, stop: int) -> tuple[int, int]:
        """See `DecodedRun`."""
        offsets = self.offsets
        return bisect_left(offsets, offsets[start]), bisect_right(offsets, offsets[stop - 1])


def handled(handler: MessageHandler, run: DecodedRun) -> Iterator[DecodedRun]:
    """
    Yield what a handler makes of a run, in order.

    A record for which it raises an error is a run of its own, unchanged, with the `failure`.
    """
    start = 0
    copies: list[Sequence[Message]] = []
    for i in range(run.count):
        try:
            copies.append(_copies(handler, _message(run, i)))
        except Exception as exc:  # noqa: BLE001 (the user's code may raise anything)
            yield from _expanded(run, start, copies)
            yield _as_handled(run.part(i, i + 1), failure=_failure(exc))
            start, copies = i + 1, []
    yield from _expanded(run, start, copies)


def _message(run: DecodedRun, i: int) -> Message:
    return Message(
        topic=run.partition.topic,
        partition=run.partition.partition,
        offset=run.offsets[i],
        timestamp=run.timestamps[i],
        key=run.keys[i],
        value=run.values[i],
        headers=list(run.headers[i] or ()),
    )


def _as_handled(run: DecodedRun, *, failure: str) -> HandledRun:
    columns = {one.name: getattr(run, one.name) for one in fields(DecodedRun)}
    return HandledRun(**columns, failure=failure)


def _failure(exc: Exception) -> str:
    """Return one short line that can be written anywhere: it is the user's text."""
    line = " ".join(f"{type(exc).__name__}: {exc}".split())[:MOST_CHARS]
    return line.encode("utf-8", "backslashreplace").decode()


def _copies(handler: MessageHandler, message: Message) -> Sequence[Message]:
    copies = [_checked(one) for one in islice(handler.handle(message), MOST_COPIES + 1)]
    if len(copies) > MOST_COPIES:
        raise ValueError(f"more than {MOST_COPIES} copies of one record")
    return copies


def _checked(copy: Message) -> Message:
    """
    Return a copy.

    Raises:
        TypeError, ValueError: It is not what a record consists of, or no client can write it.
    """
    if not isinstance(copy, Message):
        raise TypeError(f"a {type(copy).__name__} is no Message")
    for name, data in (("key", copy.key), ("value", copy.value)):
        if data is not None and not isinstance(data, bytes):
            raise TypeError(f"the {name} of a copy is a {type(data).__name__}, not bytes or None")
    at = cast("object", copy.timestamp)
    if not isinstance(at, int) or at == 0 or not NO_TIMESTAMP <= at <= LATEST_MS:
        raise ValueError(f"the timestamp of a copy is {at!r}, not above 0 or -1")
    headers = [_header(*one) for one in cast("list[tuple[object, object]]", copy.headers)]
    return copy._replace(headers=headers)


def _header(name: object, value: object) -> tuple[str, bytes | None]:
    if not isinstance(name, str) or not isinstance(value, bytes | None):
        raise TypeError("a header of a copy is not a pair of str and bytes")
    if "\0" in name or name.encode("utf-8", "replace").decode() != name:
        raise ValueError("the name of a header of a copy cannot be written")
    return name, value


def _expanded(
    run: DecodedRun, start: int, copies: Sequence[Sequence[Message]]
) -> Iterator[DecodedRun]:
    """Yield the copies of the records from this index on, as one run; nothing if there are none."""
    flat = [(start + i, copy) for i, some in enumerate(copies) for copy in some]
    if not flat:
        return
    is_last = start + len(copies) == run.count and bool(copies[-1])
    yield HandledRun(
        partition=run.partition,
        offsets=[run.offsets[i] for i, _ in flat],
        timestamps=[copy.timestamp for _, copy in flat],
        keys=[copy.key for _, copy in flat],
        values=[copy.value for _, copy in flat],
        headers=[copy.headers or None for _, copy in flat],
        leader_epoch=run.leader_epoch if is_last else None,
        size_bytes=sum(len(copy.value or b"") for _, copy in flat),
        codec=run.codec,
    )
