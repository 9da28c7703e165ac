"""A record that the target refuses: it is identified, and other records wait only briefly."""

import re
import time
from collections.abc import Sequence

import pytest
from confluent_kafka import Producer

from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.refused_records import (
    DROPPING,
    WITHIN,
    Record,
    assert_no_process_ended,
    configure,
    offer,
    values,
)
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

HOUR_MS = 3_600_000


def shape(text: str) -> list[Record]:
    """Return records; `n2k1` is two records without a key, then one with a key."""
    return [
        (None if letter == "n" else b"key", b"%s-%d-%d" % (letter.encode(), at, i))
        for at, (letter, count) in enumerate(re.findall(r"([nk])(\d+)", text))
        for i in range(int(count))
    ]


@pytest.fixture
def pair(site: Site) -> tuple[str, str]:
    """Two more topics of one task: one with refused records, and one without."""
    refused, sound = f"{site.topic}-refused", f"{site.topic}-sound"
    for topic in (refused, sound):
        site.source.create_topic(topic, 1)
    return refused, sound


def wait_for_values(site: Site, topic: str, wanted: Sequence[bytes | None]) -> None:
    """Wait until the copy has exactly these values."""
    wait_until(
        lambda: values(site, topic) == list(wanted), within=WITHIN, what=f"the copy of {topic}"
    )


@pytest.mark.parametrize("shaped", ["n2k1", "n10k10", "n10", "n1k1", "k1n1", "k10n1k10", "k3n2k2"])
def test_records_before_a_refused_one_arrive_and_other_topics_continue(
    site: Site, pair: tuple[str, str], shaped: str
) -> None:
    """A compacted copy refuses records without a key; the records before them are copied."""
    refused, sound = pair
    records = shape(shaped)
    offer(site, refused, records)
    configure(site.source, refused, "cleanup.policy=compact")
    offer(site, sound, shape("k5"))

    with mirror(site.config(), "--once") as running:
        assert running.wait() == 1, running.errors
        assert_no_process_ended(running)

    (stopped,) = running.found("partition.stopped")
    good = [value for _, value in records[: [key for key, _ in records].index(None)]]
    assert stopped["cause"] == "RecordRefused"
    assert f"next_offset={len(good)}" in stopped["reason"]
    assert "has no key" in stopped["reason"]
    assert "compacted" in stopped["reason"]
    assert values(site, refused) == good
    assert values(site, sound) == [value for _, value in shape("k5")]


def test_a_timestamp_that_the_copy_does_not_take_is_named(
    site: Site, pair: tuple[str, str]
) -> None:
    """The reason names the limit and the topic, and the records before it arrive."""
    early, sound = pair
    remote = f"{site.flow.source}.{early}"
    site.target.create_topic(remote, 1)
    configure(site.source, early, "message.timestamp.after.max.ms=9223372036854775807")
    now_ms = time.time_ns() // 1_000_000
    offer(site, early, shape("k10"), timestamp_ms=now_ms)
    offer(site, early, shape("k10"), timestamp_ms=now_ms + 6 * HOUR_MS)
    offer(site, sound, shape("k5"))

    with mirror(site.config(), "--once") as running:
        assert running.wait() == 1, running.errors
        assert_no_process_ended(running)

    (stopped,) = running.found("partition.stopped")
    assert "message.timestamp.after.max.ms" in stopped["reason"]
    assert remote in stopped["reason"]
    assert len(values(site, early)) == 10
    assert len(values(site, sound)) == 5


def test_an_unforeseen_refusal_is_searched_for_without_ending_a_process(
    site: Site, pair: tuple[str, str]
) -> None:
    """If the copy becomes compacted without the task's knowledge, the task finds the record."""
    refused, sound = pair
    with mirror(site.config()) as running:
        running.wait_for("ready")
        configure(site.target, f"{site.flow.source}.{refused}", "cleanup.policy=compact")
        records = shape("k300n1k300")
        offer(site, refused, records)
        offer(site, sound, shape("k5"))
        stopped = running.wait_for("partition.stopped")
        wait_for_values(site, sound, [value for _, value in shape("k5")])
        assert running.stop() == 1, running.errors
        assert_no_process_ended(running)

    assert "INVALID_RECORD" in stopped["reason"] or "no key" in stopped["reason"]
    assert values(site, refused) == [value for _, value in records[:300]]
    assert running.found("batch.refused"), "the refusal was foreseen: the search was not tested"


def test_a_partition_resumes_when_its_cause_is_gone(site: Site, pair: tuple[str, str]) -> None:
    """The limit of the copy is raised, and the partition resumes without a restart."""
    refused, _ = pair
    remote = f"{site.flow.source}.{refused}"
    with mirror(site.config()) as running:
        running.wait_for("ready")
        configure(site.target, remote, "max.message.bytes=2000")
        offer(site, refused, [(b"k", b"small"), (b"k", b"x" * 5_000), (b"k", b"after")])
        stopped = running.wait_for("partition.stopped")
        assert "max.message.bytes" in stopped["reason"]
        assert values(site, refused) == [b"small"]
        configure(site.target, remote, "max.message.bytes=20000")
        running.wait_for("partition.resumed")
        wait_for_values(site, refused, [b"small", b"x" * 5_000, b"after"])
        assert running.stop() == 0, running.errors
        assert_no_process_ended(running)


@pytest.mark.parametrize("mode", [{}, DROPPING], ids=["exactly once", "at least once"])
def test_a_topic_with_a_small_limit_appears_in_a_running_flow(
    site: Site, mode: dict[str, str]
) -> None:
    """A new topic whose limit is many times its records gets smaller batches in the same run."""
    small = f"{site.topic}-small"
    with mirror(site.config(refresh_topics_interval_seconds=1, **mode)) as running:
        running.wait_for("ready")
        site.source.create_topic(small, 1, config={"max.message.bytes": "20000"})
        producer = Producer({**site.source.client_config(), "batch.size": 16_000})
        wanted = [b"%07d" % i + b"x" * 993 for i in range(2_000)]
        for value in wanted:
            producer.produce(small, value, partition=0)
        assert producer.flush(10) == 0
        wait_for_values(site, small, wanted)
        assert running.stop() == 0, running.errors
        assert_no_process_ended(running)
        assert not running.found("batch.refused")
        assert not running.found("records.dropped")


def test_a_limit_that_the_flow_raises_by_itself_is_no_end(site: Site) -> None:
    """A record above the copy's old limit waits until the flow's own sync has raised the limit."""
    topic = f"{site.topic}-raised"
    site.source.create_topic(topic, 1)
    config = site.config(sync_topic_configs_enabled="true", sync_topic_configs_interval_seconds=10)
    with mirror(config) as running:
        running.wait_for("ready")
        offer(site, topic, shape("k10"))
        wait_for_values(site, topic, [value for _, value in shape("k10")])
        configure(site.source, topic, "max.message.bytes=5242880")
        producer = Producer({**site.source.client_config(), "message.max.bytes": 5_000_000})
        producer.produce(topic, b"x" * 3_000_000, partition=0)
        assert producer.flush(10) == 0
        offer(site, topic, shape("k100"))
        running.wait_for("topic.altered", topic=f"{site.flow.source}.{topic}")
        wait_until(lambda: len(values(site, topic)) == 111, within=WITHIN, what="all records")
        assert running.stop() == 0, running.errors
        assert_no_process_ended(running)


@pytest.mark.parametrize("shaped", ["n2k1", "k5n1k5", "k5n2k5", "k1n1", "n10"])
def test_at_least_once_drops_exactly_the_refused_records(
    site: Site, pair: tuple[str, str], shaped: str
) -> None:
    """With `abort.on.send.failure=false`, other records arrive and nothing is copied twice."""
    refused, sound = pair
    records = shape(shaped)
    offer(site, refused, records)
    configure(site.source, refused, "cleanup.policy=compact")
    offer(site, sound, shape("k5"))

    with mirror(site.config(**DROPPING), "--once") as running:
        assert running.wait() == 0, running.errors
        assert_no_process_ended(running)

    keyless = sum(key is None for key, _ in records)
    assert sum(event["records"] for event in running.found("records.dropped")) == keyless
    assert values(site, refused) == [value for key, value in records if key is not None]
    assert values(site, sound) == [value for _, value in shape("k5")]


def test_at_least_once_repeats_only_the_batch_that_was_refused(
    site: Site, pair: tuple[str, str]
) -> None:
    """After an unforeseen refusal, the records around it arrive, and repeated ones are in order."""
    refused, sound = pair
    with mirror(site.config(**DROPPING)) as running:
        running.wait_for("ready")
        configure(site.target, f"{site.flow.source}.{refused}", "cleanup.policy=compact")
        records = shape("k300n1k300")
        offer(site, refused, records)
        offer(site, sound, shape("k5"))
        running.wait_for("records.dropped")
        offer(site, refused, [(b"k", b"last")])
        wait_until(
            lambda: b"last" in values(site, refused), within=WITHIN, what="the record after it"
        )
        assert running.stop() == 0, running.errors
        assert_no_process_ended(running)

    assert sum(event["records"] for event in running.found("records.dropped")) == 1
    found = values(site, refused)
    wanted = [value for key, value in records if key is not None] + [b"last"]
    assert list(dict.fromkeys(reversed(found)))[::-1] == wanted
    assert len(found) - len(wanted) <= len(records), "more than the refused batch was repeated"
    assert values(site, sound) == [value for _, value in shape("k5")]
