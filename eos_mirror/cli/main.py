"""`eos-mirror VERB`: parses, calls the verb, prints. Data goes to stdout, messages to stderr."""

import argparse
import atexit
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from eos_mirror import __version__
from eos_mirror.errors import MirrorError

EXAMPLES = {
    "demo": "eos-mirror demo",
    "run": "eos-mirror run mm2.properties --check",
    "config": "eos-mirror config show mm2.properties",
    "status": "eos-mirror status mm2.properties 'A->B'",
    "pause": "eos-mirror pause mm2.properties 'A->B' --topics 'orders.*' --reason 'upgrade of B'",
    "resume": "eos-mirror resume mm2.properties 'A->B' --topics 'orders.*'",
    "stop": "eos-mirror stop mm2.properties 'A->B' --topics 'orders.*'",
    "start": "eos-mirror start mm2.properties 'A->B' --topics 'orders.*'",
    "throttle": "eos-mirror throttle mm2.properties 'A->B' --bytes-per-second 5000000",
    "retry": "eos-mirror retry mm2.properties 'A->B' --topics orders",
    "reload": "eos-mirror reload mm2.properties",
    "offsets": "eos-mirror offsets show mm2.properties 'A->B'",
    "quarantine": "eos-mirror quarantine list mm2.properties 'A->B'",
    "translate": "eos-mirror translate mm2.properties 'A->B' orders 0 2400",
    "verify": "eos-mirror verify mm2.properties 'A->B' --explain",
    "adopt": "eos-mirror adopt mm2.properties 'A->B' --from mm2 --plan",
    "bench": "eos-mirror bench mm2.properties 'A->B' --rate 50000",
    "brokers": "eos-mirror brokers doctor",
    "completion": "eos-mirror completion bash > /etc/bash_completion.d/eos-mirror",
}
"""One for each verb, at the end of its help."""

VERBS = tuple(EXAMPLES)
"""Each is a module of this package with `register` and `run`."""


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run one verb.

    Returns:
        Exit code: 0 done, 1 failed, 2 configuration, 3 a difference, 4 refused as unsafe.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    # only the requested verb is imported: a mirror does not need the demo
    wanted = [verb for verb in VERBS if arguments[:1] == [verb]] or VERBS
    verbs: dict[str, Any] = {
        verb: importlib.import_module(f"eos_mirror.cli.{verb}") for verb in wanted
    }
    args = parser_of(verbs).parse_args(arguments)
    try:
        return int(verbs[args.verb].run(args))
    except MirrorError as exc:
        for line in str(exc).splitlines():
            sys.stderr.write(f"eos-mirror: {line}\n")
        return exc.exit_code


def parser_of(verbs: Mapping[str, Any]) -> argparse.ArgumentParser:
    """Return the parser of the command line, with these verbs; each help ends in an example."""
    parser = argparse.ArgumentParser(
        prog="eos-mirror", description="Exactly-once replication between two Kafka clusters."
    )
    parser.add_argument("--version", action="version", version=f"eos-mirror {__version__}")
    subparsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, verb in verbs.items():
        verb.register(subparsers)
        subparsers.choices[name].epilog = f"example: {EXAMPLES[name]}"
    return parser


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
