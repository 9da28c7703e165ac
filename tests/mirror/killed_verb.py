"""Runs a verb in a process of its own, which may be killed at one of its steps."""

import subprocess
import sys
from collections.abc import Sequence

KILLED = """
import importlib, os, signal, sys
from functools import reduce
module, path = sys.argv[1:3]
*owners, name = path.split(".")
owner = reduce(getattr, owners, importlib.import_module(module))
setattr(owner, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
from eos_mirror.cli.main import main
sys.exit(main(sys.argv[3:]))
"""
"""Kills the process where it would call a function; module and function are the first arguments."""


def verb(
    *arguments: str, killed: Sequence[str] = (), within_s: float = 120
) -> "subprocess.CompletedProcess[str]":
    """Run a verb. `killed`: the module and the function where it is killed."""
    start = ["-c", KILLED, *killed] if killed else ["-m", "eos_mirror.cli.main"]
    return subprocess.run(
        [sys.executable, *start, *arguments],
        capture_output=True, text=True, check=False, timeout=within_s,
    )  # fmt: skip
