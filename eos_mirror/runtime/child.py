"""
The program of a local child: `python -m eos_mirror.runtime.child [MODULE...]`, the spec on stdin.

The modules are loaded before the spec arrives.
"""

import importlib
import os
import sys

from eos_mirror.runtime.body import run_task
from eos_mirror.runtime.lifeline import die_with_parent
from eos_mirror.runtime.outcome import ExitCode
from eos_mirror.runtime.spec import spec_from_json


def main() -> None:
    """Read the spec, run the task, and exit without running destructors."""
    die_with_parent()
    for module in sys.argv[1:]:
        importlib.import_module(module)
    text = sys.stdin.read()
    if not text:
        os._exit(ExitCode.ORPHAN)  # the driver died before it sent the spec
    run_task(spec_from_json(text))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ExitCode.STOPPED)


if __name__ == "__main__":
    main()
