"""`eos-mirror completion SHELL`: prints a script that completes verbs and options."""

import argparse
import importlib
import sys
from typing import Any

from eos_mirror.errors import ConfigError

SHELLS = ("bash", "zsh", "tcsh")
INSTALL = "pip install 'eos-mirror[terminal]'"


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser("completion", help="print a completion script for a shell")
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=" | ".join(SHELLS))


def run(args: argparse.Namespace) -> int:
    """
    Print the script; return 0.

    Raises:
        ConfigError: The package that makes the script is not installed.
    """
    from eos_mirror.cli.main import VERBS, parser_of  # noqa: PLC0415 - it imports the verbs

    try:
        import shtab  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise ConfigError(f"completion: shtab is not installed: {INSTALL}") from exc
    verbs = {verb: importlib.import_module(f"eos_mirror.cli.{verb}") for verb in VERBS}
    sys.stdout.write(shtab.complete(parser_of(verbs), args.shell) + "\n")
    return 0
