"""Lists that change in the configuration of a running mirror are applied; other keys are not."""

import signal
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.client import MirrorClient
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import set_group_offsets
from eos_mirror.ports import GroupOffset
from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror, produce

pytestmark = pytest.mark.brokers

SOON = timedelta(seconds=60)


def rewrite(config: Path, old: str, new: str) -> None:
    """Replace a text of the file atomically."""
    text = config.read_text()
    assert old in text
    copy = config.with_suffix(".new")
    copy.write_text(text.replace(old, new))
    copy.replace(config)


def test_topics_come_and_go_with_the_file(site: Site) -> None:
    """A topic added later is mirrored whole and without duplicates; a fault is reported."""
    other = f"other-{site.topic}"
    remotes = {site.topic: site.remote, other: f"{site.flow.source}.{other}"}
    site.source.create_topic(other, site.partitions)
    config = site.config(summary_interval_seconds=1)
    only, both = f"topics = {site.topic}.*\n", f"topics = {site.topic}, {other}\n"

    def add(topic: str, count: int, *, start: int) -> None:
        produce(site.source, topic, count, partitions=site.partitions, start=start)

    def caught_up(topic: str) -> None:
        site.view.wait_caught_up(topic, remotes[topic], partitions=site.partitions)

    with mirror(config) as running:
        running.wait_for("ready")
        add(other, 400, start=0)
        rewrite(config, only, both)
        taken = running.wait_for("config.reloaded")
        assert taken["keys"] == ["topics"]
        caught_up(other)
        rewrite(config, both, only)
        running.wait_for("config.reloaded", count=2)
        told = len(running.found("flow.summary", owned=site.partitions))
        running.wait_for("flow.summary", count=told + 1, owned=site.partitions)
        add(other, 400, start=400)
        add(site.topic, 400, start=0)
        caught_up(site.topic)
        rewrite(config, only, "topics = (\n")
        refused = running.wait_for("config.invalid")
        assert refused["reason"].startswith(f"{config}:")
        add(site.topic, 400, start=400)
        caught_up(site.topic)
        rewrite(config, "topics = (\n", both)
        caught_up(other)
        assert running.stop() == 0, running.errors
    for topic, remote in remotes.items():
        compared = site.compare(topic, remote)
        assert compared.exact, compared
        assert compared.matched == 800


def test_sighup_applies_the_file_now(site: Site) -> None:
    """The next regular look would be in ten minutes. What needs a restart is named."""
    other = f"other-{site.topic}"
    site.source.create_topic(other, site.partitions)
    config = site.config(refresh_topics_interval_seconds=600)
    with mirror(config) as running:
        running.wait_for("ready")
        rewrite(config, f"topics = {site.topic}.*\n", f"topics = {site.topic}, {other}\n")
        rewrite(config, "tasks.max = 1\n", "tasks.max = 2\n")
        produce(site.source, other, 400, partitions=site.partitions)
        running.process.send_signal(signal.SIGHUP)
        assert running.wait_for("config.reloaded")["keys"] == ["topics"]
        assert running.wait_for("config.pending")["keys"] == ["tasks.max"]
        remote = f"{site.flow.source}.{other}"
        site.view.wait_caught_up(other, remote, partitions=site.partitions)
        running.process.send_signal(signal.SIGHUP)
        assert running.wait_for("config.reloaded", count=2)["keys"] == []
        assert running.stop() == 0, running.errors


def test_a_flow_without_topics_waits_for_one(site: Site) -> None:
    """Its tasks own nothing meanwhile. Before, they failed when the last topic left."""
    site.produce(400)
    config = site.config(summary_interval_seconds=1)
    mine, others = f"topics = {site.topic}.*\n", "topics = none-of-them\n"
    with mirror(config) as running:
        site.wait_caught_up()
        rewrite(config, mine, others)
        running.wait_for("config.reloaded")
        told = len(running.found("flow.summary", owned=0))
        running.wait_for("flow.summary", count=told + 2, owned=0)
        site.produce(400, start=400)
        rewrite(config, others, mine)
        site.wait_caught_up()
        assert running.stop() == 0, running.errors
    assert running.found("task.restarting") == []
    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 800


def test_groups_come_with_the_file(site: Site) -> None:
    """Groups that the configuration adds get checkpoints immediately."""
    for group in ("first", "second"):
        partitions = {
            TopicPartition(site.topic, p): GroupOffset(position=Position(10, None), metadata="")
            for p in range(site.partitions)
        }
        name = f"{group} of {site.topic}"
        set_group_offsets(site.source.admin(), name, partitions, side=Side.SOURCE)
    site.produce(400)
    config = site.config(
        emit_checkpoints_enabled="true",
        emit_checkpoints_interval_seconds=1,
        groups=f"first of {site.topic}",
    )
    client = MirrorClient(site.target.client_config())

    def followed() -> set[str]:
        topic = f"{site.flow.source}.checkpoints.internal"
        if topic not in site.target.admin().list_topics(timeout=10).topics:
            return set()
        return {
            group
            for group in ("first", "second")
            if client.remote_consumer_offsets(
                f"{group} of {site.topic}", site.flow.source, timeout=SOON
            )
        }

    with mirror(config) as running:
        wait_until(lambda: followed() == {"first"}, within=SOON, what="the first group")
        rewrite(config, "groups = first", "groups = .*")
        wait_until(lambda: followed() == {"first", "second"}, within=SOON, what="both groups")
        assert running.found("config.reloaded")[0]["keys"] == ["groups"]
        assert running.stop() == 0, running.errors
