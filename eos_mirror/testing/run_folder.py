"""
The folders of running clusters, and the cleanup after dead processes.

Each folder names its owner, and each node its process, by process id *and* start time: nothing
is ever killed or removed that these files do not prove to be ours.
"""

import os
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

from eos_mirror.testing.locks import locked
from eos_mirror.testing.processes import identity, is_running

OWNER, NODE_PROCESS = "owner", "process"
ENOUGH_MEMORY_BYTES = 1_000_000_000
"""Containers often give /dev/shm 64 MB, which a cluster fills immediately."""


def base_folder() -> Path:
    """Return the folder of all running clusters of this user: in memory if there is room."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of our own with random names inside
    roomy = memory.is_dir() and os.access(memory, os.W_OK)
    if roomy and shutil.disk_usage(memory).free > ENOUGH_MEMORY_BYTES:
        return memory / f"eos-mirror-{os.getuid()}"
    return Path(tempfile.gettempdir()) / f"eos-mirror-{os.getuid()}"


def kept_logs_folder() -> Path:
    """Return the folder that keeps the logs of failed tests; never in memory."""
    return Path(tempfile.gettempdir()) / f"eos-mirror-logs-{os.getuid()}"


def new_run_folder(name: str, *, base: Path | None = None) -> Path:
    """Sweep the folders of dead processes, and create one for a cluster of this process."""
    base = base or base_folder()
    base.mkdir(parents=True, exist_ok=True)
    with locked(base / ".lock"):
        sweep(base)
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=base))
        (folder / OWNER).write_text(identity(os.getpid()), encoding="utf-8")
    return folder


def sweep(base: Path) -> None:
    """Kill the nodes of dead owners and remove their folders."""
    for folder in (path for path in base.iterdir() if path.is_dir()):
        if is_running(_read(folder / OWNER)):
            continue
        for file in folder.glob(f"*/{NODE_PROCESS}"):
            process = _read(file)
            if is_running(process):
                with suppress(ProcessLookupError):
                    os.kill(int(process.split()[0]), signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def keep_logs(folder: Path) -> Path:
    """Copy the node logs of a run to a folder that is not swept, and return that folder."""
    kept = kept_logs_folder() / folder.name
    kept.mkdir(parents=True, exist_ok=True)
    for log in folder.glob("*/*.log"):
        shutil.copyfile(log, kept / f"{log.parent.name}-{log.name}")
    return kept


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
