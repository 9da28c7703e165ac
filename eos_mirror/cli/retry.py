"""`eos-mirror retry FILE A->B`: tries stopped partitions of a running flow again, now."""

import argparse
from typing import Any

from eos_mirror.cli.topic_orders import add_topics, reached_flow, tell
from eos_mirror.operate.desired import retry


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    add_topics(subparsers.add_parser("retry", help="try stopped partitions of a flow again, now"))


def run(args: argparse.Namespace) -> int:
    """Ask the run to try again; return 0 when it does."""
    return tell(
        args.flow,
        retry(reached_flow(args), topics=args.topics),
        without_run="no run mirrors it; the next one tries everything",
        done="stopped partitions are tried again; see `eos-mirror status`",
    )
