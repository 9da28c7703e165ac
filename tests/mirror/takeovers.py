"""Runs a real MirrorMaker 2 for a site; takes its copies over, and hands them back."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Producer

from eos_mirror.core.connect_offsets import SOURCE_CONNECTOR, offsets_topic
from eos_mirror.testing import read_topic, wait_until
from tests.mirror.conftest import Site
from tests.mirror.java_mm2 import COPIES_WITHIN, running_mm2

COPIED, STORED, ALL = 300, 200, 400
"""Records of all partitions: copied, known to be copied, and on the source."""

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
    """Write a configuration of MirrorMaker 2 for the flow of the site, with more lines."""
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


def copy_by_mm2(site: Site, start: int, count: int, *, exactly_once: bool) -> None:
    """Produce records, let MirrorMaker 2 copy them, and stop it."""
    site.produce(count, start=start)
    log = site.folder / f"java-{start}.log"
    with running_mm2(mm2_file(site, exactly_once=exactly_once), log) as java:
        wait_until(
            lambda: copied(site) >= start + count or java.poll() is not None,
            within=COPIES_WITHIN,
            what=f"copies, see {log}",
        )
        assert java.poll() is None, log.read_text()[-2000:]


def adopt(site: Site, *arguments: str, origin: str = "mm2") -> tuple[int, str]:
    """Run `adopt --from`; return its exit code and what it prints."""
    return _adopt(site, "--from", origin, *arguments)


def hand_over(site: Site, *arguments: str) -> tuple[int, str]:
    """Run `adopt --to mm2`; return its exit code and what it prints."""
    return _adopt(site, "--to", "mm2", *arguments)


def adopt_as(site: Site, mode: Mapping[str, str], *arguments: str) -> tuple[int, str]:
    """Run `adopt` of a flow that is configured for a mode; return exit code and what it prints."""
    return _adopt(site, *arguments, config=site.config(**mode))


def _adopt(site: Site, *arguments: str, config: Path | None = None) -> tuple[int, str]:
    config = config or site.config()
    command = [sys.executable, "-m", "eos_mirror.cli.main", "adopt", str(config), str(site.flow)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def states_reported(site: Site) -> list[str]:
    """Return every state of the source connector that the workers reported, in order."""
    topic = f"mm2-status.{site.flow.source}.internal"
    (records,) = read_topic(site.target.client_config(), topic)
    key = f"status-connector-{SOURCE_CONNECTOR}".encode()
    return [json.loads(one.value)["state"] for one in records if one.key == key and one.value]


def copied_by_another(
    site: Site, stored_in: str = "", *, connector: str = SOURCE_CONNECTOR
) -> None:
    """Leave what a MirrorMaker 2 leaves that was killed: copies, and an older position of each."""
    copy_some(site)
    producer = Producer(site.target.client_config())
    positions = stored_in or offsets_topic(site.flow.source)
    site.target.create_topic(positions, 1)
    for number in range(site.partitions):
        where = {"cluster": site.flow.source, "partition": number, "topic": site.topic}
        key = json.dumps([connector, where], separators=(",", ":"))
        last = STORED // site.partitions - 1
        producer.produce(positions, f'{{"offset":{last}}}', key)
    assert producer.flush(30) == 0


def copy_some(site: Site) -> None:
    """Copy the first records of each partition, as a program without transactions does."""
    producer = Producer(site.target.client_config())
    site.target.create_topic(site.remote, site.partitions)
    per_partition = COPIED // site.partitions
    source = read_topic(site.source.client_config(), site.topic, partitions=site.partitions)
    for number, records in enumerate(source):
        for one in records[:per_partition]:
            producer.produce(
                site.remote,
                one.value,
                one.key,
                number,
                timestamp=one.timestamp[1],
                headers=list(one.headers),
            )
    assert producer.flush(30) == 0
