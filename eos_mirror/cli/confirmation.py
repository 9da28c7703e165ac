"""Asks on the terminal before a verb does what cannot be undone."""

import sys
from collections.abc import Callable

from eos_mirror.errors import ConfigError


def is_confirmed(what: str, *, details: Callable[[], str] = str) -> bool:
    """
    Say what will be done, and return whether the user agrees.

    Args:
        details: Returns lines to show before the question; called if there is a terminal.

    Raises:
        ConfigError: There is no terminal to ask on.
    """
    if not sys.stdin.isatty():
        raise ConfigError(f"{what}: add --yes")
    sys.stderr.write(details())
    sys.stderr.write(f"eos-mirror: {what}. Continue? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
