"""The message handler of `--handler`: it drops, multiplies, marks and refuses records."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from eos_mirror.core.handlers import Message
from eos_mirror.testing import Record
from tests.chaos.load import number_of
from tests.chaos.site import COMPACTED

MARK = "handled"
FAILS_EVERY = 97


class Handler:
    """By the number of a record: no copy, one, or two; every 97th is refused."""

    def __init__(self, _: Mapping[str, str]) -> None:
        """No arguments are used."""

    def handle(self, message: Message) -> Iterator[Message]:
        """Yield the copies. Records of the compacted topic stay as they are."""
        if message.topic == COMPACTED:
            yield message
            return
        number = number_of(_record_of(message))
        if number % FAILS_EVERY == 0:
            raise ValueError(f"record {number}")
        for copy in range(number % 3):
            yield message._replace(headers=[*message.headers, (MARK, b"%d" % copy)])


def copies_of(topic: str, record: Record) -> list[Record]:
    """Return the copies of a record; the record itself if the handler refuses it."""
    message = Message(
        topic=topic,
        partition=0,
        offset=record.offset,
        timestamp=record.timestamp[1],
        key=record.key,
        value=record.value,
        headers=list(record.headers),
    )
    try:
        return [
            replace(record, headers=tuple(copy.headers)) for copy in Handler({}).handle(message)
        ]
    except ValueError:
        return [record]


def _record_of(message: Message) -> Record:
    return Record(key=message.key, value=message.value, headers=tuple(message.headers))
