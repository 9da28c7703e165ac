"""
Replaces itself by another program that dies with its parent.

Run as `python -I -S launch.py PARENT_PID PROGRAM ARGUMENT...`. A death signal set here survives
exec, so the program keeps this process id and needs no supervisor.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Request SIGKILL from Linux for the death of the parent, then exec. Elsewhere only exec."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(argv[0]):
        os._exit(1)  # the parent died before the death signal was set
    os.execv(argv[1], argv[1:])  # noqa: S606 - becoming this program is the purpose


if __name__ == "__main__":
    main(sys.argv[1:])
