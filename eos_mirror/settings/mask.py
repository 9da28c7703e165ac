"""Masks secrets, so that they never reach a repr, a log, a fault or a note."""

import re
from collections.abc import Mapping

HIDDEN = "********"

_SENSITIVE = re.compile(
    r"password|passphrase|secret|jaas|credentials|private[.]?key|access[.]?key"
    r"|token(?![.]endpoint)|[.]key([.]pem)?$|sasl[.]oauthbearer[.]config$",
    re.IGNORECASE,
)


def is_sensitive(key: str) -> bool:
    """Return whether the value of this key must never be shown."""
    return _SENSITIVE.search(key) is not None


def mask(key: str, value: str) -> str:
    """Return the value, or a placeholder if it must not be shown."""
    return HIDDEN if is_sensitive(key) else value


class Masked(dict[str, str]):
    """
    A configuration dictionary whose repr and str hide the secrets.

    It is a dict, so it can be passed to a client, copied, pickled and written as JSON. Those
    contain the secrets.
    """

    def __repr__(self) -> str:
        return repr(masked(self))


def masked(values: Mapping[str, str]) -> dict[str, str]:
    """Return a copy that may be shown."""
    return {key: mask(key, value) for key, value in values.items()}
