"""`eos-mirror config from-strimzi | from-connect`: prints an equivalent mm2.properties."""

import argparse
import sys
from pathlib import Path

from eos_mirror.errors import ConfigError
from eos_mirror.settings.connectors import convert_connectors
from eos_mirror.settings.converted import settle, text_of
from eos_mirror.settings.strimzi import convert_resources

STDIN = "-"


def from_strimzi(args: argparse.Namespace) -> int:
    """
    Print the equivalent of a resource, and on stderr what was not taken over; return 0.

    Raises:
        ConfigError: The file cannot be converted; lists every fault, one line each.
    """
    file, text = _read(args.file)
    draft = convert_resources(text, file=file)
    settle(draft)
    return _print(text_of(draft, verb="config from-strimzi"), draft.not_taken)


def from_connect(args: argparse.Namespace) -> int:
    """
    Print the equivalent of connectors, and on stderr what was not taken over; return 0.

    Raises:
        ConfigError: A file cannot be converted; lists every fault, one line each.
    """
    draft = convert_connectors([_read(file) for file in args.file])
    settle(draft)
    return _print(text_of(draft, verb="config from-connect"), draft.not_taken)


def _read(file: str) -> tuple[str, str]:
    """Return the name of a file and its text."""
    if file == STDIN:
        return "stdin", sys.stdin.read()
    try:
        return file, Path(file).read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read: {exc.strerror}; correct the path") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{file}: is no UTF-8 text; name another file") from exc


def _print(text: str, not_taken: dict[str, str]) -> int:
    sys.stdout.write(text)
    for path, reason in not_taken.items():
        sys.stderr.write(f"eos-mirror: not taken over: {path}: {reason}\n")
    return 0
