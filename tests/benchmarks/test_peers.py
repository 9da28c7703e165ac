"""A peer does not outlive its benchmark."""

import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from eos_mirror.testing.processes import identity, is_running
from eos_mirror.testing.waiting import wait_until

SOON = timedelta(seconds=20)

BENCHMARK = """
import sys, threading
from pathlib import Path
from benchmarks.peers import Job, Peer

job = Job(source="s", target="t", topic="x", alias="p", codec="none", folder=Path(sys.argv[1]))
sleep = "import os, threading; print(os.getpid(), flush=True); threading.Event().wait()"
Peer(name="sleeper", command=lambda job: [sys.executable, "-c", sleep]).start(job)
threading.Event().wait()
"""


def test_a_peer_dies_with_a_benchmark_that_is_killed(tmp_path: Path) -> None:
    """A peer dies with its benchmark; otherwise it would retry its lost brokers indefinitely."""
    said = tmp_path / "p.log"
    with subprocess.Popen([sys.executable, "-c", BENCHMARK, tmp_path]) as benchmark:
        wait_until(
            lambda: said.exists() and said.read_text(encoding="utf-8").endswith("\n"),
            within=SOON,
            what="the start of the peer",
        )
        peer = identity(int(said.read_text(encoding="utf-8")))
        assert is_running(peer)
        benchmark.send_signal(signal.SIGKILL)

    wait_until(lambda: not is_running(peer), within=SOON, what="the exit of the peer")
