"""`eos-mirror config from-strimzi | from-connect | from-mm1`: prints an mm2.properties."""

import argparse
import sys
from pathlib import Path
from typing import Final

from eos_mirror.errors import ConfigError
from eos_mirror.settings.connectors import convert_connectors
from eos_mirror.settings.converted import settle, text_of
from eos_mirror.settings.mm1 import Flags, convert_mm1
from eos_mirror.settings.properties import read_properties
from eos_mirror.settings.strimzi import convert_resources

STDIN = "-"
UNUSED: Final = {
    "--offset.commit.interval.ms": "positions are committed with the records",
    "--new.consumer": "there is one kind of consumer",
}
"""Flags of MirrorMaker 1 without a counterpart, and why."""


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


def from_mm1(args: argparse.Namespace) -> int:
    """
    Print the equivalent of a command line of MirrorMaker 1, and on stderr what was not taken over.

    Raises:
        ConfigError: It cannot be converted; lists every fault, one line each.
    """
    include = args.include or args.whitelist
    if not include:
        raise ConfigError("--include is missing: which topics MirrorMaker 1 copied")
    flags = Flags(
        include=include,
        exclude=args.blacklist,
        streams=args.streams,
        handler=args.handler,
        handler_args=args.handler_args,
        listener=args.listener,
        listener_args=args.listener_args,
        abort_on_send_failure=args.abort == "true",
        unused={flag: reason for flag, reason in UNUSED.items() if getattr(args, flag) is not None},
    )
    draft = convert_mm1(flags, read_properties(args.consumer), read_properties(args.producer))
    settle(draft)
    return _print(text_of(draft, verb="config from-mm1"), draft.not_taken)


def add_mm1_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of kafka-mirror-maker.sh."""
    parser.add_argument("--consumer.config", dest="consumer", metavar="FILE", required=True)
    parser.add_argument("--producer.config", dest="producer", metavar="FILE", required=True)
    parser.add_argument("--include", metavar="REGEX", help="the topics; commas separate names")
    parser.add_argument("--whitelist", metavar="REGEX", help="the same in older versions")
    parser.add_argument("--blacklist", metavar="REGEX", help="the topics that are not copied")
    parser.add_argument("--num.streams", dest="streams", metavar="N")
    parser.add_argument("--message.handler", dest="handler", metavar="CLASS")
    parser.add_argument("--message.handler.args", dest="handler_args", metavar="TEXT")
    parser.add_argument("--consumer.rebalance.listener", dest="listener", metavar="CLASS")
    parser.add_argument("--rebalance.listener.args", dest="listener_args", metavar="TEXT")
    parser.add_argument(
        "--abort.on.send.failure", dest="abort", choices=("true", "false"), default="true"
    )
    for flag in UNUSED:
        parser.add_argument(flag, dest=flag, metavar="VALUE", nargs="?", const="")


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
