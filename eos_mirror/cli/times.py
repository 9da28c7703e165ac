"""Times on the command line."""

from datetime import UTC, datetime, timedelta
from typing import Final

from eos_mirror.errors import ConfigError

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EXPECTED: Final = "expected ISO-8601 with a zone, such as 2026-01-31T12:00:00Z"


def time_of(flag: str, text: str) -> datetime:
    """
    Return the time that a text is, in ISO-8601.

    Args:
        flag: Named in the error.

    Raises:
        ConfigError: It is no time, or it has no zone.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError as exc:
        raise ConfigError(f"{flag} {text!r}: {EXPECTED}") from exc
    if at.tzinfo is None:
        raise ConfigError(f"{flag} {text!r}: {EXPECTED}")
    return at


def past_time_of(flag: str, text: str, *, now: datetime) -> datetime:
    """
    Return the time that a text is, in ISO-8601 or in milliseconds since 1970.

    Raises:
        ConfigError: It is no time, it has no zone, or it has not come yet.
    """
    if text.isascii() and text.isdecimal():
        at = _of_milliseconds(flag, text)
    else:
        try:
            at = time_of(flag, text)
        except ConfigError as exc:
            raise ConfigError(f"{exc}, or milliseconds since 1970") from exc
    if at > now:
        raise ConfigError(f"{flag} {text}: this time has not come yet; give one that has passed")
    return at


def _of_milliseconds(flag: str, text: str) -> datetime:
    try:
        return EPOCH + timedelta(milliseconds=int(text))
    except (OverflowError, ValueError) as exc:
        raise ConfigError(f"{flag} {text}: too many milliseconds since 1970") from exc
