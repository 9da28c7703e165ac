"""`verify --watch` and `--resume`: a proof that runs beside the mirror, and resumes later."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.load import Load
from tests.mirror.proofs import DIFFERENT, SPARK, verify
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]


class Watching:
    """`eos-mirror verify --watch` in its own process."""

    def __init__(self, site: Site, state: Path) -> None:
        self.said = site.folder / "watch.txt"
        command = "verify", site.config(**SPARK), str(site.flow), "--watch", "--resume", state
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "eos_mirror.cli.main", *command],
                stdout=said, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def wait_for(self, text: str) -> None:
        """Wait until it has printed this text."""
        wait_until(
            lambda: text in self.said.read_text() or self.process.poll() is not None,
            within=timedelta(seconds=90),
            what=f"{text!r} in {self.said.read_text()}",
        )
        assert text in self.said.read_text(), self.said.read_text()

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def watching(site: Site, state: Path) -> Iterator[Watching]:
    """Run a watch that does not outlive the block."""
    one = Watching(site, state)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait(10)


@pytest.mark.spark
def test_a_watch_proves_a_running_mirror_and_a_later_proof_continues_there(
    site: Site,
) -> None:
    """A watch finds no difference under load; a later proof reads only new records."""
    state = site.folder / "proven.json"
    site.produce(10_000)
    with mirror(site.config()) as running:
        running.wait_for("ready")
        with watching(site, state) as watch:
            watch.wait_for("10000 records match, no difference")
            with Load(site).running() as load:
                load.wait_for(16_000)
            watch.wait_for(f"{10_000 + load.count} records match, no difference")
            assert watch.stop() == 0, watch.said.read_text()
        assert "difference" not in watch.said.read_text().replace("no difference", "")
        assert running.stop() == 0, running.errors
    proven = json.loads(state.read_text())["proven"][str(site.flow)]
    assert sum(one["count"] for one in proven) == 10_000 + load.count

    producer = Producer(site.target.client_config())
    producer.produce(site.remote, b"not ours", partition=2)
    producer.flush(10)
    code, (topic,), said = verify(site, "--resume", str(state))
    assert code == DIFFERENT, said
    assert topic["matched"] == 10_000 + load.count
    assert [one["kind"] for p in topic["partitions"] for one in p["differences"]] == ["foreign"]
    assert "1 topic, 0 offsets" in said, "it began from the start"


def test_a_watch_is_for_one_flow(site: Site) -> None:
    """`--watch` verifies all of one flow; with a sample, some records would never be compared."""
    state = site.folder / "proven.json"
    code, _, said = verify(site, "--watch", "--sample", "5%", "--resume", str(state))
    assert (code, state.exists()) == (2, False)
    assert "--watch verifies all of one flow" in said


def test_a_file_of_somebody_else_is_not_overwritten(site: Site) -> None:
    """A file that is no proof, such as the configuration, is refused and left unchanged."""
    config = site.config()
    before = config.read_text()
    code, _, said = verify(site, "--resume", str(config))
    assert (code, config.read_text()) == (2, before)
    assert "choose another file" in said
    assert "Traceback" not in said
