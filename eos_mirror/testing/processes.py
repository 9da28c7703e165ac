"""
Starts child processes that never outlive this one, even when it is killed with SIGKILL.

Linux ties a death signal to the *thread* that forked, so one thread that lives as long as this
process forks every child.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from eos_mirror.testing import launch

PS_TIMEOUT_S = 10.0
START_TIME_FIELD = 18
"""Index among the fields after the state in /proc/<pid>/stat (proc(5): field 22)."""


def spawn(
    command: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.STDOUT,
) -> subprocess.Popen[bytes]:
    """
    Start a program in a new session, so that Ctrl-C reaches only this process.

    Args:
        command: Absolute path of the program, then its arguments.

    Raises:
        OSError: The program does not exist.
    """
    program = Path(command[0])
    if not os.access(program, os.X_OK):
        raise FileNotFoundError(f"{program} is not a program")
    launcher = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]

    def fork() -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - every caller names the program itself
            [*launcher, *command],
            env=environ,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )

    return _forking_thread(os.getpid()).submit(fork).result()


def run(
    command: Sequence[str],
    *,
    timeout_s: float,
    stdin: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """
    Run a program to its exit and return its output; never raises for its exit code.

    Raises:
        OSError: The program does not exist.
        TimeoutError: It was still running after `timeout_s`, and was killed.
    """
    process = spawn(
        command,
        environ=environ,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            out, err = process.communicate(stdin.encode() if stdin else None, timeout=timeout_s)
        except subprocess.TimeoutExpired as exc:
            process.kill()
            out, err = process.communicate()
            raise TimeoutError(
                f"{' '.join(command)} still ran after {timeout_s:g} s; it had written:\n"
                f"{out.decode(errors='replace')}{err.decode(errors='replace')}"
            ) from exc
    return subprocess.CompletedProcess(
        list(command),
        process.returncode,
        out.decode(errors="replace"),
        err.decode(errors="replace"),
    )


def start_time(pid: int) -> str | None:
    """Return a process's start time, only fit to compare; None if there is no such process."""
    if not Path("/proc/self/stat").exists():
        shown = run(["/bin/ps", "-o", "lstart=", "-p", str(pid)], timeout_s=PS_TIMEOUT_S)
        return shown.stdout.strip() or None
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else fields[START_TIME_FIELD]


def identity(pid: int) -> str:
    """Return process id and start time: unlike the id alone, they name one process uniquely."""
    return f"{pid} {start_time(pid)}"


def is_running(identity_text: str) -> bool:
    """Return whether the process that `identity` named is still running."""
    pid, _, started = identity_text.strip().partition(" ")
    return pid.isdigit() and started not in {"", "None"} and start_time(int(pid)) == started


@functools.cache
def _forking_thread(pid: int) -> ThreadPoolExecutor:
    """Return one thread per process; `pid` keeps a forked child off its parent's thread."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"eos-mirror-fork-{pid}")
