"""`eos-mirror pause FILE A->B`: pauses topics of a flow, also if it does not run."""

import argparse
from typing import Any

from eos_mirror.cli.topic_orders import add_order, give_order
from eos_mirror.core.desired import Wanted


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    add_order(subparsers.add_parser("pause", help="pause topics of a flow"))


def run(args: argparse.Namespace) -> int:
    """Pause topics; return 0 when nothing of them is read any more."""
    return give_order(args, Wanted.PAUSED)
