"""`eos-mirror stop FILE A->B`: stops topics of a flow: no task holds their partitions."""

import argparse
from typing import Any

from eos_mirror.cli.topic_orders import add_order, give_order
from eos_mirror.core.desired import Wanted


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    add_order(subparsers.add_parser("stop", help="stop topics of a flow"))


def run(args: argparse.Namespace) -> int:
    """Stop topics; return 0 when no task holds their partitions any more."""
    return give_order(args, Wanted.STOPPED)
