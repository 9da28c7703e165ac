"""What identifies this run, and which other runs of this host are gone."""

import os
import socket
from contextlib import suppress
from datetime import UTC, datetime

from eos_mirror import __version__
from eos_mirror.core.run_identity import RunIdentity
from eos_mirror.settings.fingerprint import fingerprint
from eos_mirror.settings.model import FlowSettings

BEGAN = datetime.fromisoformat(datetime.now(UTC).isoformat(timespec="milliseconds"))
"""When this process began, as exact as the start in an identity; its runs began later."""


def identity_of(flow: FlowSettings) -> RunIdentity:
    """Return the identity of this process as a run of a flow. Each call makes a new one."""
    return RunIdentity(
        started_at=datetime.now(UTC),
        host=socket.gethostname(),
        pid=os.getpid(),
        version=__version__,
        fingerprint=fingerprint(flow),
    )


def is_gone(run: RunIdentity) -> bool:
    """
    Return True if a run was a process of this host and is none any more.

    A container that starts again has the host name and the process id of the one before it; the
    start tells them apart.
    """
    if run.host != socket.gethostname():
        return False
    if run.pid == os.getpid():
        return run.started_at < BEGAN
    with suppress(PermissionError):  # it is another user's
        try:
            os.kill(run.pid, 0)
        except ProcessLookupError:
            return True
    return False


def is_here(run: RunIdentity) -> bool:
    """Return True if a run is a living process of this host."""
    return run.host == socket.gethostname() and not is_gone(run)
