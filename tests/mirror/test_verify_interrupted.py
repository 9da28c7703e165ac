"""A comparison that is interrupted says so, with both runtimes, and leaves no process behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.proofs import ON_BOTH, with_folder
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

INTERRUPTED = 130


INTERRUPTIBLE = """
import signal
from eos_mirror.cli.main import program
signal.signal(signal.SIGINT, signal.default_int_handler)
program()
"""
"""A background shell makes the tests and their children ignore Ctrl-C; this restores it."""


@pytest.mark.long
@ON_BOTH
def test_an_interrupted_proof_says_so_and_leaves_nothing_behind(
    site: Site, place: Mapping[str, str]
) -> None:
    """After Ctrl-C while ranges are compared there is no traceback, no report and no process."""
    site.produce(400)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    report = site.folder / "report.json"
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "verify", str(site.config(**place)),
         "--json", str(report)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=with_folder("stuck"),
    ) as verifying:  # fmt: skip
        assert verifying.stderr is not None
        said = next(line for line in verifying.stderr if "slots" in line)
        assert "400 offsets" in said
        interrupt = os.kill if place else os.killpg  # a terminal signals the whole group
        interrupt(verifying.pid, signal.SIGINT)
        rest = verifying.stderr.read()
    assert verifying.returncode == INTERRUPTED, rest
    assert "interrupted" in rest
    assert "Traceback" not in rest
    assert not report.exists()
    wait_until(
        lambda: not processes_of(verifying.pid),
        within=timedelta(seconds=20),
        what="the exit of all processes",
    )


def processes_of(session: int) -> list[str]:
    """Return the processes of a session that still run."""
    left = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            _, _, fields = path.read_text().rpartition(")")
            state, _, _, its_session = fields.split()[:4]
            if int(its_session) == session and state != "Z":
                left.append(path.parent.name)
    return left
