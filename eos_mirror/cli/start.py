"""`eos-mirror start FILE A->B`: starts stopped topics of a flow, where they stopped."""

import argparse
from typing import Any

from eos_mirror.cli.pause import add_arguments, give
from eos_mirror.core.desired import Wanted


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    add_arguments(subparsers.add_parser("start", help="start stopped topics of a flow"))


def run(args: argparse.Namespace) -> int:
    """Start topics; return 0 when they are mirrored again."""
    return give(args, Wanted.RUNNING)
