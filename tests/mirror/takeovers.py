"""Runs a real MirrorMaker 2 for a site; takes its copies over, and hands them back."""

import json
import subprocess
import sys
from pathlib import Path

from eos_mirror.core.connect_offsets import SOURCE_CONNECTOR
from eos_mirror.testing import read_topic
from tests.mirror.conftest import Site

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


def mm2_file(site: Site, *, exactly_once: bool, more: str = "") -> Path:
    """Write a configuration of MirrorMaker 2 for the flow of the site, with more lines at its end."""
    text = SETTINGS + (EXACTLY_ONCE if exactly_once else "") + more
    file = site.folder / "java.properties"
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
    return _adopt(site, "--from", "mm2", *arguments)


def hand_over(site: Site, *arguments: str) -> tuple[int, str]:
    """Run `adopt --to mm2`; return its exit code and what it prints."""
    return _adopt(site, "--to", "mm2", *arguments)


def _adopt(site: Site, *arguments: str) -> tuple[int, str]:
    config = site.config()
    command = [sys.executable, "-m", "eos_mirror.cli.main", "adopt", str(config), str(site.flow)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def states_reported(site: Site) -> list[str]:
    """Return every state of the source connector that the workers reported, in order."""
    topic = f"mm2-status.{site.flow.source}.internal"
    (records,) = read_topic(site.target.client_config(), topic)
    key = f"status-connector-{SOURCE_CONNECTOR}".encode()
    return [json.loads(one.value)["state"] for one in records if one.key == key and one.value]
