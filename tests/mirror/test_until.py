"""`eos-mirror run --until TIME` mirrors what is before a time, and exits."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer

from tests.mirror.command_line import verb
from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

TIME = datetime(2026, 1, 31, 12, tzinfo=UTC)
UNTIL = ("--until", "2026-01-31T12:00:00Z")
TIME_MS = int(TIME.timestamp() * 1000)
BEFORE, AFTER = 400, 4_000
"""Records of each side of the time, over all partitions; a millisecond between two of them."""

MODES = pytest.mark.parametrize("mode", ["true", "false"], ids=["exactly once", "at least once"])


def fill(site: Site) -> None:
    """Write records before the time and after it; partition 1 has none of the later ones."""
    producer = Producer({**site.source.client_config(), "linger.ms": 5})
    for number in range(-BEFORE, AFTER):
        partition = number % site.partitions
        if number < 0 or partition != 1:
            at, value = TIME_MS + number, b"%d" % number
            producer.produce(site.topic, value, partition=partition, timestamp=at)
    assert producer.flush(30) == 0


@contextmanager
def open_transaction(site: Site, at: datetime) -> Iterator[Producer]:
    """Write a record with this time to partition 0, and leave its transaction open."""
    producer = Producer({**site.source.client_config(), "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(site.topic, b"open", partition=0, timestamp=int(at.timestamp() * 1000))
    assert producer.flush(10) == 0
    yield producer


@MODES
def test_a_backfill_ends_and_the_flow_continues_from_there(site: Site, mode: str) -> None:
    """Everything before the time is copied, not everything after it, and nothing comes twice."""
    config = site.config(transaction_producer=mode)
    fill(site)
    verb("throttle", config, site, "--records-per-second", "200")
    with mirror(config, *UNTIL) as running:
        assert running.wait() == 0, running.errors
        assert running.found("flow.caught_up")
    copied = site.values()
    for partition, values in enumerate(copied):
        wanted = [b"%d" % n for n in range(-BEFORE, 0) if n % site.partitions == partition]
        assert values[: len(wanted)] == wanted
    assert len(copied[1]) == BEFORE // site.partitions, "it has no later ones"
    assert sum(map(len, copied)) < BEFORE + AFTER // 2, "it ended with the log, not at the time"

    verb("throttle", config, site, "--off")
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors
    found = site.compare()
    assert found.exact, found


def test_a_transaction_after_the_time_is_not_waited_for(site: Site) -> None:
    """It holds up a run with `--once`, but not this one."""
    config = site.config()
    with open_transaction(site, TIME - timedelta(seconds=1)) as producer:
        producer.commit_transaction(10)
    with open_transaction(site, TIME) as producer:
        with mirror(config, *UNTIL) as running:
            assert running.wait(within_s=9) == 0, running.errors
        assert site.values()[0] == [b"open"]
        with mirror(config, "--once") as running:
            assert running.wait() == 1, running.errors
        producer.commit_transaction(10)
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors
    assert site.compare().exact
    assert site.values()[0] == [b"open", b"open"]


def test_a_transaction_before_the_time_is_waited_for(site: Site) -> None:
    """Its records belong to the backfill, so the run fails while they cannot be read."""
    config = site.config()
    with open_transaction(site, TIME - timedelta(milliseconds=1)) as producer:
        with mirror(config, *UNTIL) as running:
            assert running.wait() == 1, running.errors
            (said,) = running.found("flow.incomplete")
            assert said["open_transactions"].keys() == {f"{site.topic}-0"}
        producer.commit_transaction(10)
    with mirror(config, "--until", str(TIME_MS)) as running:
        assert running.wait() == 0, running.errors
    assert site.values()[0] == [b"open"]


def test_a_time_after_every_record_is_the_end_of_the_log(site: Site) -> None:
    """As with `--once`."""
    site.produce(BEFORE)
    with mirror(site.config(), "--until", datetime.now(UTC).isoformat()) as running:
        assert running.wait() == 0, running.errors
    assert site.compare().exact
