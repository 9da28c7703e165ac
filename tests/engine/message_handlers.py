"""Message handlers for tests: pure functions of a record."""

from collections.abc import Iterator, Mapping

from eos_mirror.core.handlers import HandlerSpec, Message


class Varied:
    """Makes no copy, one, two or three of a record, by its number; numbers their headers."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._mark = config["message.handler.args"]

    def handle(self, message: Message) -> Iterator[Message]:
        """Yield the copies."""
        for copy in range(number_of(message) % 4):
            header = (self._mark, b"%d" % copy)
            yield message._replace(headers=[*message.headers, header])


class Failing(Varied):
    """Fails for every seventh record."""

    def handle(self, message: Message) -> Iterator[Message]:
        """Yield the copies."""
        if number_of(message) % 7 == 3:
            raise ValueError(f"number {number_of(message)}")
        yield from super().handle(message)


class Large(Varied):
    """Makes a small copy of each record, and a large one."""

    def handle(self, message: Message) -> Iterator[Message]:
        """Yield the copies."""
        yield message
        yield message._replace(value=b"x" * 900_000)


def number_of(message: Message) -> int:
    """Return the number at the end of the value; 1 without one."""
    digits = (message.value or b"").rpartition(b"-")[2]
    return int(digits) if digits.isdigit() else 1


def spec_of(handler: type[Varied]) -> HandlerSpec:
    """Return how a configuration names a handler of this module."""
    return HandlerSpec(
        path=f"{handler.__module__}.{handler.__qualname__}",
        config=(("message.handler.args", "copy"),),
    )
