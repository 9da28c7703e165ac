"""Tests of every verb that acts on a running mirror, while records flow, on any runtime."""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.command_line import status_and_code, verb
from tests.mirror.conftest import Site, make_site
from tests.mirror.load import Load
from tests.mirror.refused_records import configure, offer
from tests.mirror.toolbox import Mirror, mirror

SESSION_MS = 6_000
STILL_S = 10.0
MEASURED_S = float(os.environ.get("EOS_MIRROR_MEASURED_S", "10"))
RATE = 400
SOON = timedelta(seconds=60)
BURST_S = 1.5
"""A limit may be exceeded for so long, while the shares of the tasks change."""

GROWN = 1_000
"""Records after which a topic that is mirrored has visibly grown."""


class Stage:
    """Two topics under load, of one and of three partitions, and the file of a flow of both."""

    def __init__(self, site: Site, config: Path) -> None:
        self.busy = Site(**{**vars(site), "partitions": 1})
        self.other = Site(**{**vars(site), "topic": f"{site.topic}-other", "partitions": 3})
        self.other.source.create_topic(self.other.topic, self.other.partitions)
        self.config = config

    def verb(self, name: str, *arguments: str) -> str:
        """Run a verb on the flow; it returns when the run has done it."""
        return verb(name, self.config, self.busy, *arguments)

    def mirrored(self, site: Site) -> int:
        """Return how many records of the source are in the copy: these topics have no gaps."""
        positions = site.view.positions(site.remote, site.partitions).values()
        return sum(max(0, position) for position in positions)

    def wait_until_grown(self, site: Site) -> None:
        """Wait until more records have been mirrored."""
        wanted = self.mirrored(site) + GROWN
        wait_until(lambda: self.mirrored(site) >= wanted, within=SOON, what=f"{wanted} records")

    def stands_still(self, site: Site, *, while_grows: Site) -> bool:
        """Return whether the end of a copy stays where it is for ten seconds."""
        ends, grown = _ends(site), self.mirrored(while_grows)
        threading.Event().wait(STILL_S)  # what is tested is that nothing happens meanwhile
        assert self.mirrored(while_grows) > grown, "the other topic does not grow either"
        return _ends(site) == ends

    def rate(self, *sites: Site) -> float:
        """Measure how many records a second are mirrored."""
        began, before = time.monotonic(), sum(map(self.mirrored, sites))
        threading.Event().wait(MEASURED_S)
        passed_s = time.monotonic() - began
        return (sum(map(self.mirrored, sites)) - before) / passed_s


def _ends(site: Site) -> Mapping[int, int]:
    wanted = [TopicPartition(site.remote, p) for p in range(site.partitions)]
    return {p.partition: end for p, end in site.view.target.ends(wanted).items()}


def end(stage: Stage, running: Mirror) -> None:
    """Lift every order, and stop the run; the fixture ends the load and compares."""
    for name in ("resume", "throttle"):
        stage.verb(name, *(("--off",) if name == "throttle" else ()))
    for one in (stage.busy, stage.other):
        stage.wait_until_grown(one)
    assert not running.found("task.restarting")
    assert running.stop(within_s=60) == 0, running.errors


class VerbsUnderLoad:
    """
    The tests. Each runtime is a file of its own, so that they run at the same time.

    Attributes:
        runtime: Keys of the configuration, with `_` for `.`.
    """

    runtime: ClassVar[Mapping[str, str]]

    @pytest.fixture
    def stage(
        self, tmp_path: Path, source_cluster: Cluster, target_cluster: Cluster
    ) -> Iterator[Stage]:
        """A flow with two tasks, one of which has the only partition of the busy topic."""
        site = make_site(tmp_path, source_cluster, target_cluster, partitions=1)
        config = site.config(tasks_max=2, session_timeout_ms=SESSION_MS, **self.runtime)
        stage = Stage(site, config)
        with ExitStack() as loads:
            for one in (stage.busy, stage.other):
                loads.enter_context(Load(one).running())
            yield stage
        with mirror(config, "--once") as last:
            assert last.wait(within_s=120) == 0, last.errors
        for one in (stage.busy, stage.other):
            assert one.compare().exact

    @pytest.fixture
    def running(self, stage: Stage) -> Iterator[Mirror]:
        """A run of the flow that mirrors both topics."""
        with mirror(stage.config) as running:
            running.wait_for("ready", within_s=90)
            for one in (stage.busy, stage.other):
                stage.wait_until_grown(one)
            yield running

    @pytest.mark.parametrize("words", [("pause", "resume"), ("stop", "start")])
    def test_a_topic_stands_still_also_after_a_kill_of_the_driver(
        self, stage: Stage, running: Mirror, words: tuple[str, str]
    ) -> None:
        """The other topic grows all along, and the topic continues where it stopped."""
        halt, go = words
        stage.verb(halt, "--topics", stage.busy.topic)
        assert stage.stands_still(stage.busy, while_grows=stage.other)
        running.kill()
        with mirror(stage.config) as successor:
            successor.wait_for("ready", within_s=90)
            stage.wait_until_grown(stage.other)
            assert stage.stands_still(stage.busy, while_grows=stage.other)
            stage.verb(go, "--topics", stage.busy.topic)
            stage.wait_until_grown(stage.busy)
            end(stage, successor)

    def test_a_limit_holds_with_all_load_on_one_of_two_tasks(
        self, stage: Stage, running: Mirror
    ) -> None:
        """Then with load on both, and after a kill of the driver: it is not exceeded."""
        stage.verb("pause", "--topics", stage.other.topic)
        stage.verb("throttle", "--records-per-second", str(RATE), "--reason", "night")
        shown = status_and_code(stage.config)[0]
        assert f"  all topics together: limited to {RATE} records/s since " in shown
        alone = stage.rate(stage.busy)
        stage.verb("resume")
        both = stage.rate(stage.busy, stage.other)
        running.kill()
        with mirror(stage.config) as successor:
            successor.wait_for("ready", within_s=90)
            again = stage.rate(stage.busy, stage.other)
            print(json.dumps({"limit": RATE, "alone": alone, "both": both, "again": again}))  # noqa: T201
            for rate in (alone, both, again):
                assert rate <= RATE * (1.05 + BURST_S / MEASURED_S)
            end(stage, successor)

    def test_a_file_is_read_and_a_stopped_partition_is_retried(
        self, stage: Stage, running: Mirror
    ) -> None:
        """Neither disturbs what is mirrored."""
        configure(stage.busy.target, stage.busy.remote, "max.message.bytes=2000")
        offer(stage.busy, stage.busy.topic, [(b"k", b"x" * 5_000)])
        running.wait_for("partition.stopped")
        configure(stage.busy.target, stage.busy.remote, "max.message.bytes=20000")
        stage.verb("retry")
        stage.wait_until_grown(stage.busy)
        configure(stage.busy.target, stage.busy.remote, "max.message.bytes=1048588")

        text = stage.config.read_text()
        stage.config.write_text(f"{text}topics.exclude = {stage.other.topic}\n")
        stage.verb("reload")
        assert stage.stands_still(stage.other, while_grows=stage.busy)
        stage.config.write_text(text)
        stage.verb("reload")
        end(stage, running)
