"""Run folders, port leases, and the cleanup after processes that died."""

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.testing import wait_until
from eos_mirror.testing.processes import identity, is_running, run, spawn
from eos_mirror.testing.run_folder import keep_logs, kept_logs_folder, new_run_folder, sweep
from eos_mirror.testing.tcp_ports import FIRST_PORT, LAST_PORT, PortLease, is_free

SOON = timedelta(seconds=10)
SLEEP = ["/bin/sleep", "600"]


def dead_identity() -> str:
    """Return the identity of a process that has exited."""
    with spawn(SLEEP) as process:
        text = identity(process.pid)
        process.kill()
    return text


def test_a_program_dies_when_its_parent_is_killed(tmp_path: Path) -> None:
    """When SIGKILL gives the parent no chance to clean up, the kernel does it."""
    child = tmp_path / "child"
    command = ["/bin/sh", "-c", f"echo $$ > {child}; exec {' '.join(SLEEP)}"]
    script = (
        "from eos_mirror.testing.processes import spawn\n"
        f"spawn({command!r})\n"
        "import threading; threading.Event().wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as parent:
        wait_until(
            lambda: child.exists() and child.read_text(encoding="utf-8").endswith("\n"),
            within=SOON,
            what="the child runs, not only its launcher",
        )
        process = identity(int(child.read_text(encoding="utf-8")))
        assert is_running(process)
        parent.send_signal(signal.SIGKILL)

    wait_until(lambda: not is_running(process), within=SOON, what="the child is gone")


def test_an_identity_is_of_one_process_only() -> None:
    """A process id that another process got is not ours any more."""
    pid, started = identity(os.getpid()).split()

    assert is_running(f"{pid} {started}")
    assert not is_running(f"{pid} {int(started) + 1}")
    assert not is_running(dead_identity())
    assert not is_running("")


def test_a_program_that_hangs_is_killed_and_its_output_shown() -> None:
    """A tool that does not exit in time raises an error that shows what it wrote."""
    with pytest.raises(TimeoutError, match="half an answer"):
        run(["/bin/sh", "-c", "echo half an answer; exec sleep 600"], timeout_s=0.5)


def test_the_sweep_kills_and_removes_only_what_dead_owners_left(tmp_path: Path) -> None:
    """A folder of a living owner stays, and so does a process that only has the same process id."""
    dead, living = tmp_path / "dead", tmp_path / "living"
    with spawn(SLEEP) as orphan, spawn(SLEEP) as stranger:
        for folder, owner in ((dead, dead_identity()), (living, identity(os.getpid()))):
            (folder / "node-1").mkdir(parents=True)
            (folder / "owner").write_text(owner, encoding="utf-8")
        (dead / "node-1" / "process").write_text(identity(orphan.pid), encoding="utf-8")
        (dead / "node-2").mkdir()
        (dead / "node-2" / "process").write_text(f"{stranger.pid} 1", encoding="utf-8")

        sweep(tmp_path)

        assert orphan.wait(timeout=SOON.total_seconds()) == -signal.SIGKILL
        assert stranger.poll() is None
        stranger.kill()
    assert not dead.exists()
    assert living.exists()


def test_a_new_folder_survives_the_next_sweep(tmp_path: Path) -> None:
    """Two clusters of one process do not remove each other."""
    first = new_run_folder("a", base=tmp_path)
    second = new_run_folder("a", base=tmp_path)

    assert first != second
    assert first.is_dir()


def test_kept_logs_outlive_their_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of a failure are copied to a folder that no sweep removes, one file per node."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    log = tmp_path / "run-x" / "node-1" / "server.log"
    log.parent.mkdir(parents=True)
    log.write_text("why", encoding="utf-8")

    kept = keep_logs(tmp_path / "run-x")

    assert kept.parent == kept_logs_folder()
    assert (kept / "node-1-server.log").read_text(encoding="utf-8") == "why"


def test_a_leased_port_is_free_and_nobody_elses() -> None:
    """Leases never share a port, and stay below the ports of outgoing connections."""
    leases = [PortLease() for _ in range(20)]
    ports = {lease.port for lease in leases}

    assert len(ports) == len(leases)
    assert all(FIRST_PORT <= port <= LAST_PORT and is_free(port) for port in ports)
    for lease in leases:
        lease.release()
