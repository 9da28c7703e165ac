"""`eos-mirror VERB`: parse, call, print. stdout is data, stderr is talk."""

import argparse
import sys
from collections.abc import Sequence

from eos_mirror import __version__
from eos_mirror.cli import brokers, demo, run, translate
from eos_mirror.errors import MirrorError

VERBS = {"demo": demo, "run": run, "translate": translate, "brokers": brokers}


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
    subparsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS.values():
        verb.register(subparsers)
    args = parser.parse_args(argv)
    try:
        return int(VERBS[args.verb].run(args))
    except MirrorError as exc:
        for line in str(exc).splitlines():
            sys.stderr.write(f"eos-mirror: {line}\n")
        return exc.exit_code


if __name__ == "__main__":
    sys.exit(main())
