"""`eos-mirror VERB`: parse, call, print. stdout is data, stderr is talk."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any

from eos_mirror import __version__
from eos_mirror.errors import MirrorError

VERBS = ("demo", "run", "translate", "adopt", "brokers")
"""Each is a module of this package with `register` and `run`."""


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run one verb.

    Returns:
        Exit code: 0 done, 1 failed, 2 configuration, 4 refused as unsafe.
    """
    parser = argparse.ArgumentParser(
        prog="eos-mirror", description="Exactly-once replication between two Kafka clusters."
    )
    parser.add_argument("--version", action="version", version=f"eos-mirror {__version__}")
    arguments = sys.argv[1:] if argv is None else list(argv)
    # the verb that is asked for is all that is loaded: a mirror has no use for the demo
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


if __name__ == "__main__":
    sys.exit(main())
