"""`eos-mirror VERB`: parses, calls the verb, prints. Data goes to stdout, messages to stderr."""

import argparse
import atexit
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from eos_mirror import __version__
from eos_mirror.errors import MirrorError

VERBS = (
    "demo", "run", "config", "status", "pause", "resume", "stop", "start", "retry", "reload",
    "translate", "verify", "adopt", "bench", "brokers",
)  # fmt: skip
"""Each is a module of this package with `register` and `run`."""


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run one verb.

    Returns:
        Exit code: 0 done, 1 failed, 2 configuration, 3 a difference, 4 refused as unsafe.
    """
    parser = argparse.ArgumentParser(
        prog="eos-mirror", description="Exactly-once replication between two Kafka clusters."
    )
    parser.add_argument("--version", action="version", version=f"eos-mirror {__version__}")
    arguments = sys.argv[1:] if argv is None else list(argv)
    # only the requested verb is imported: a mirror does not need the demo
    wanted = [verb for verb in VERBS if arguments[:1] == [verb]] or VERBS
    verbs: dict[str, Any] = {
        verb: importlib.import_module(f"eos_mirror.cli.{verb}") for verb in wanted
    }
    subparsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in verbs.values():
        verb.register(subparsers)
    args = parser.parse_args(arguments)
    try:
        return int(verbs[args.verb].run(args))
    except MirrorError as exc:
        for line in str(exc).splitlines():
            sys.stderr.write(f"eos-mirror: {line}\n")
        return exc.exit_code


def program() -> NoReturn:
    """
    Run `main` as a process that exits when it is done.

    The destructor of a Kafka client that once lost its broker can block indefinitely (librdkafka
    issue 4674). So nothing is destroyed; only the exit handlers that libraries registered run.
    """
    codes: list[int] = []
    atexit.register(lambda: _leave(codes))  # registered first, run last
    try:
        code = main()
        sys.stdout.flush()
        codes.append(code)
    except BrokenPipeError:  # the reader has what it wants, as `head` has after its last line
        codes.append(1)
    except Exception:
        codes.append(1)
        raise
    sys.exit(codes[0])


def _leave(codes: Sequence[int]) -> None:
    for code in codes:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    program()
