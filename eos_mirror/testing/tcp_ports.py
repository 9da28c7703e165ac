"""
Reserves ports for as long as a cluster is up, even while its broker is down.

They are below the range from which systems pick the ports of outgoing connections (32768 and up
on Linux), so that no client takes the port of a broker that was just killed.
"""

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

from eos_mirror.testing.errors import ClusterFailed

FIRST_PORT, LAST_PORT = 15_000, 32_000
ATTEMPTS = 200


class PortLease:
    """A port of the loopback interface that no other cluster of this user takes."""

    def __init__(self) -> None:
        """
        Pick a free port.

        Raises:
            ClusterFailed: No free port was found.
        """
        self.port, self._lock = _pick()

    def release(self) -> None:
        """Give the port back. Releasing twice is harmless."""
        self._lock.close()


def _pick() -> tuple[int, IO[bytes]]:
    folder = Path(tempfile.gettempdir()) / f"eos-mirror-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for _ in range(ATTEMPTS):
        port = random.randint(FIRST_PORT, LAST_PORT)  # noqa: S311 - spreads, protects nothing
        lock = (folder / str(port)).open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_free(port):
                return port, lock
        except BlockingIOError:
            pass
        lock.close()
    raise ClusterFailed(f"found no free port between {FIRST_PORT} and {LAST_PORT}")


def is_free(port: int) -> bool:
    """Return whether a broker could listen on this port of the loopback interface now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
