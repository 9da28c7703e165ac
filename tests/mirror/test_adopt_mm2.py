"""Copies of a real MirrorMaker 2 are taken over: nothing is missing and nothing comes twice."""

import json
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.java_mm2 import running_mm2
from tests.mirror.surgery import delete_records, produce_values
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

BEFORE, PIECE, AFTER = 300_000, 50_000, 2_000
SOME = 2_000
STARTED = timedelta(seconds=90)
SETTINGS = """\
clusters = {source}, {target}
{source}.bootstrap.servers = {on_source}
{target}.bootstrap.servers = {on_target}
{source}->{target}.enabled = true
{source}->{target}.topics = {topic}
{target}->{source}.enabled = false
tasks.max = 2
replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
offset.storage.partitions = 2
status.storage.replication.factor = 1
status.storage.partitions = 1
config.storage.replication.factor = 1
emit.heartbeats.enabled = false
emit.checkpoints.enabled = false
offset.flush.interval.ms = 1000
{source}.consumer.max.poll.records = 50
"""
EXACTLY_ONCE = """\
{target}.exactly.once.source.support = enabled
{source}.consumer.isolation.level = read_committed
dedicated.mode.enable.internal.rest = true
listeners = http://127.0.0.1:0
"""


def mm2_file(site: Site, folder: Path, *, exactly_once: bool) -> Path:
    """Write a configuration of MirrorMaker 2 for the flow of the site."""
    text = SETTINGS + (EXACTLY_ONCE if exactly_once else "")
    file = folder / "java.properties"
    file.write_text(
        text.format(
            source=site.flow.source,
            target=site.flow.target,
            on_source=site.source.bootstrap,
            on_target=site.target.bootstrap,
            topic=site.topic,
        )
    )
    return file


def copied(site: Site) -> int:
    """Return how many offsets the copy has."""
    if site.remote not in site.target.admin().list_topics(timeout=10).topics:
        return 0
    return sum(map(len, site.values()))


def adopt(site: Site, *arguments: str) -> tuple[int, str]:
    """Run `adopt --from mm2`; return its exit code and what it prints."""
    config = site.config()
    command = [sys.executable, "-m", "eos_mirror.cli.main", "adopt", str(config), str(site.flow)]
    done = subprocess.run(
        [*command, "--from", "mm2", *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("exactly_once", [False, True], ids=["at-least-once", "exactly-once"])
def test_a_killed_mirrormaker_2_is_continued_exactly(site: Site, exactly_once: bool) -> None:
    """It is killed in flight, and had written more than it stored."""
    for start in range(0, BEFORE, PIECE):  # a producer has room for some records only
        site.produce(PIECE, start=start)
    log = site.folder / "java.log"
    with running_mm2(mm2_file(site, site.folder, exactly_once=exactly_once), log) as java:
        wait_until(lambda: copied(site) > SOME, within=STARTED, what=f"copies, see {log}")
        java.send_signal(signal.SIGKILL)
        java.wait()
    code, answer = adopt(site, "--plan", "--json")
    assert code == 5, answer
    plan = json.loads(answer)["partitions"]
    assert all(one["next_offset"] >= (one["stored"] or 0) for one in plan)
    assert sum(one["to_come"] for one in plan) > 0, "it was killed too late"
    beyond = [one for one in plan if one["next_offset"] > (one["stored"] or 0)]
    assert exactly_once or beyond, "everything that it wrote was stored"

    code, answer = adopt(site, "--quiet", "2")
    assert code == 0, answer
    with mirror(site.config()) as running:
        site.produce(AFTER, start=BEFORE)
        site.wait_caught_up()
        assert running.stop() == 0, running.errors
    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == BEFORE + AFTER
    assert adopt(site) == (0, f"{site.flow}: nothing to take over\n")


def test_a_takeover_that_is_not_certain_is_refused(site: Site) -> None:
    """MirrorMaker 2 runs; another client wrote into a copy. Nothing is written."""
    site.produce(SOME)
    log = site.folder / "java.log"
    with running_mm2(mm2_file(site, site.folder, exactly_once=False), log):
        wait_until(lambda: copied(site) == SOME, within=STARTED, what=f"copies, see {log}")
        code, answer = adopt(site, "--quiet", "1")
        assert code == 4, answer
        assert f"MirrorMaker 2 runs: group {site.flow.source}-mm2" in answer
    code, answer = adopt(site, "--plan")
    assert (code, answer.count("continues at 500 ")) == (5, 4), answer
    produce_values(site.target, site.remote, [b"of another client"])

    for arguments in (["--plan"], ["--quiet", "1"]):
        code, answer = adopt(site, *arguments)
        assert code == 4, answer
        assert f"{site.topic}-0: " in answer
        assert "stored 500" in answer
        assert "another client wrote it" in answer
    with mirror(site.config()) as running:
        refused = running.wait_for("topic.refused", topic=site.topic)
        assert "--from mm2" in refused["reason"]
        assert running.stop() == 1, running.errors
    delete_records(site.target, site.remote, before=501)  # with the record of the other client
    code, answer = adopt(site, "--plan")
    assert (code, answer.count("continues at 500 ")) == (4, 3), answer
