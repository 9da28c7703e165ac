"""The demo as a new user runs it, with fewer records."""

import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from eos_mirror.testing.run_folder import OWNER, base_folder

RECORDS = 30_000
MARK = "EOS_MIRROR_TEST_MARK"
"""Every process that the demo starts inherits it."""


def marked_processes(mark: str) -> list[str]:
    """Return the names of the processes that have inherited the mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found.append((folder / "comm").read_text().strip())
        except OSError:
            continue  # it has exited, or belongs to another user
    return found


@pytest.mark.long
@pytest.mark.brokers
@pytest.mark.spark
@pytest.mark.usefixtures("own_brokers")
def test_the_demo_proves_exactly_once_over_a_kill_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    """A task dies in an open transaction, the copy is exact, and no process or file is left."""
    mark = uuid.uuid4().hex
    command = [sys.executable, "-m", "eos_mirror.cli.main", "demo", "--records", str(RECORDS)]
    environ = {**os.environ, MARK: mark, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as playing:
        table, story = playing.communicate(timeout=280)

    assert playing.returncode == 0, story + table
    rows = dict(re.findall(r"^(\S.*?) {2,}(.*)$", table, flags=re.MULTILINE))
    assert [rows[name] for name in ("duplicates", "missing", "reordered", "altered")] == ["0"] * 4
    assert int(rows["tasks killed in an open transaction"]) >= 1
    assert re.search(r"eos-mirror\.A\.B\.\w+  Ongoing\n", story)
    assert int(rows["records mirrored"].split()[0].replace(",", "")) >= RECORDS
    assert not rows["records of aborted transactions"].startswith("0,")
    assert marked_processes(mark) == []
    owners = [path.read_text() for path in base_folder().glob(f"*/{OWNER}")]
    assert not [owner for owner in owners if owner.startswith(f"{playing.pid} ")]
    assert not list(tmp_path.glob("eos-mirror-demo-*"))
