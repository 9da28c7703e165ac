"""The offset map, compared with brute force: every offset, both ways, after crashes."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Producer

from eos_mirror.core.offset_map import OffsetMap
from eos_mirror.core.records import TopicPartition
from eos_mirror.operate.translate import MapReader
from eos_mirror.testing.checker import Record, read_topic
from tests.mirror.conftest import Site
from tests.mirror.source_transactions import produce_with_gaps
from tests.mirror.toolbox import mirror
from tests.mirror.translation import brute_force

pytestmark = pytest.mark.brokers


def test_every_offset_translates_exactly_both_ways(site: Site) -> None:
    """Offsets are exact through gaps, kills and restarts; past the map's end there is no guess."""
    with mirror(site.config(tasks_max=2)) as running:
        running.wait_for("ready")
        for round_number in range(3):
            produce_with_gaps(site, 30)
            os.kill(running.pid(round_number % 2), signal.SIGKILL)
            running.wait_for("task.started", count=3 + round_number)
        produce_with_gaps(site, 30)
        site.wait_caught_up()
        assert running.stop() == 0, running.errors
    assert site.compare().exact

    sources = read_topic(site.source.client_config(), site.topic, partitions=site.partitions)
    targets = read_topic(site.target.client_config(), site.remote, partitions=site.partitions)
    reader = MapReader(flow=site.flow, client_config=site.target.client_config())
    for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
        offsets = reader.load(TopicPartition(site.remote, number))
        check_forward(offsets, source, target)
        for before, after in zip(source, target, strict=True):
            assert offsets.reverse(after.offset) == before.offset


def check_forward(offsets: OffsetMap, source: list[Record], target: list[Record]) -> None:
    """Assert that every offset up to the end of the map translates exactly."""
    assert offsets.upstream_end > source[-1].offset
    for upstream in range(offsets.upstream_end + 1):
        assert offsets.translate(upstream) == brute_force(source, target, upstream), upstream


def test_what_was_spilled_behind_an_open_transaction_is_waited_for(site: Site) -> None:
    """Otherwise the map would seem to have lost its end, which readers do not see yet."""
    site.produce(400)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    other = Producer({**site.target.client_config(), "transactional.id": "another-task"})
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(site.flow.offset_map_topic, b"", b'["another",0,0]')
    other.flush(30)
    site.produce(400)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors

    reader = MapReader(flow=site.flow, client_config=site.target.client_config())
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(reader.load, TopicPartition(site.remote, 0))
        with pytest.raises(TimeoutError):
            reading.result(2)
        other.abort_transaction(30)
        offsets = reading.result(30)
    (copies, *_) = read_topic(site.target.client_config(), site.remote, partitions=site.partitions)
    assert offsets.downstream_end == copies[-1].offset + 1


def test_the_verb_prints_the_answer(site: Site) -> None:
    """`eos-mirror translate` prints the answer both ways, as text and as JSON."""
    site.produce(400)
    config = site.config()
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors

    def translate(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "eos_mirror.cli.main", "translate", config, str(site.flow),
             site.topic, "1", *arguments],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.strip()

    code, answer = translate("42")
    assert code == 0
    assert translate(answer, "--reverse") == (0, "42")
    assert json.loads(translate("42", "--json")[1])["translated"] == int(answer)
    assert translate("100000") == (1, "PENDING")
