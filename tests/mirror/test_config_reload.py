"""Lists that change in the configuration of a running mirror are applied; other keys are not."""

import signal
from datetime import timedelta
from pathlib import Path

import pytest

from tests.mirror.command_line import CONFIGURATION, fails, verb
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


def test_reload_from_anywhere_applies_the_file_before_it_ends(site: Site) -> None:
    """Without a run it says so; a file that is invalid is refused before anything is asked."""
    other = f"other-{site.topic}"
    site.source.create_topic(other, site.partitions)
    config = site.config(refresh_topics_interval_seconds=600)
    only, both = f"topics = {site.topic}.*\n", f"topics = {site.topic}, {other}\n"
    with mirror(config) as running:
        running.wait_for("ready")
        rewrite(config, only, both)
        assert "its run has read its file again" in verb("reload", config, site)
        assert running.wait_for("config.reloaded", within_s=5)["keys"] == ["topics"]
        rewrite(config, both, "topics = (\n")
        code, lines = fails("reload", str(config))
        assert (code, len(lines)) == (CONFIGURATION, 1), lines
        rewrite(config, "topics = (\n", only)
        assert running.stop() == 0, running.errors
    assert "no run mirrors it" in verb("reload", config, site)
