"""`eos-mirror start FILE A->B`: starts stopped topics of a flow, where they stopped."""

import argparse
from typing import Any

from eos_mirror.cli.topic_orders import add_order, give_order
from eos_mirror.core.desired import Wanted


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    add_order(subparsers.add_parser("start", help="start stopped topics of a flow"))


def run(args: argparse.Namespace) -> int:
    """Start topics; return 0 when they are mirrored again."""
    return give_order(args, Wanted.RUNNING)
