"""Secrets never reach a repr, a log, a fault or a note."""

import re
from collections.abc import Mapping

HIDDEN = "********"

_SENSITIVE = re.compile(
    r"password|passphrase|secret|jaas|credentials|private[.]?key|access[.]?key"
    r"|token(?![.]endpoint)|[.]key([.]pem)?$|sasl[.]oauthbearer[.]config$",
    re.IGNORECASE,
)


def is_sensitive(key: str) -> bool:
    """Whether the value under this key must never be shown."""
    return _SENSITIVE.search(key) is not None


def mask(key: str, value: str) -> str:
    """The value as it may be shown."""
    return HIDDEN if is_sensitive(key) else value


class Masked(dict[str, str]):
    """
    A dictionary of configuration whose repr and str hide the secrets.

    A dict, so that it can be handed to a client, copied, pickled and written as JSON; those
    carry the secrets.
    """

    def __repr__(self) -> str:
        return repr(masked(self))


def masked(values: Mapping[str, str]) -> dict[str, str]:
    """A copy that may be shown."""
    return {key: mask(key, value) for key, value in values.items()}
