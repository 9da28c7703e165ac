"""`errors.tolerance = all`: what the target refuses is in the quarantine; the rest is copied."""

import json
import os
import signal
import time
from collections.abc import Mapping
from functools import partial

import pytest

from eos_mirror.core.ledger import Kind
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.testing import wait_until
from tests.mirror.command_line import quarantine, verb
from tests.mirror.conftest import Site
from tests.mirror.proofs import verify
from tests.mirror.refused_records import (
    AT_LEAST_ONCE,
    TOLERANT,
    WITHIN,
    Record,
    assert_no_process_ended,
    configure,
    mixed,
    offer,
    quarantined,
    values,
)
from tests.mirror.toolbox import mirror, topics_of

pytestmark = [pytest.mark.brokers, pytest.mark.long]

HOUR_MS = 3_600_000


@pytest.fixture
def topic(site: Site) -> str:
    """A topic of one partition whose copy refuses records without a key."""
    name = f"{site.topic}-refused"
    site.source.create_topic(name, 1)
    return name


def assert_split(site: Site, topic: str, records: list[Record]) -> None:
    """Assert that each record is in the copy or in the quarantine, in order."""
    assert values(site, topic) == [value for key, value in records if key is not None]
    refused = [(n, value) for n, (key, value) in enumerate(records) if key is None]
    assert [(one.offset, one.value) for one in quarantined(site)] == refused


@pytest.mark.parametrize("mode", [{}, AT_LEAST_ONCE], ids=["exactly once", "at least once"])
def test_refused_records_are_in_the_quarantine(
    site: Site, topic: str, mode: Mapping[str, str]
) -> None:
    """The run is complete, the ledger names them, and the verb lists them with place and reason."""
    records = mixed(30)
    offer(site, topic, records)
    configure(site.source, topic, "cleanup.policy=compact")

    with mirror(site.config(**TOLERANT, **mode), "--once") as running:
        assert running.wait() == 0, running.errors
        assert_no_process_ended(running)

    assert_split(site, topic, records)
    found = quarantined(site)
    assert {str(one.source) for one in found} == {f"{topic}-0"}
    assert {one.code for one in found} == {"INVALID_RECORD"}
    assert all("has no key" in one.reason for one in found)
    events = running.found("records.quarantined")
    assert sum(event["records"] for event in events) == len(found)
    assert {event["topic"] for event in events} == {site.flow.quarantine_topic}
    entries = read_ledger(site.target.client_config(), site.flow)
    noted = [one.details for one in entries if one.kind is Kind.QUARANTINE]
    assert [(one["from"], one["to"]) for one in noted] == [(n, n + 1) for n in range(1, 30, 3)]

    code, text = quarantine(site, "list", "--json")
    assert code == 0, text
    listed = [json.loads(line) for line in text.splitlines()]
    assert [one["offset"] for one in listed] == [one.offset for one in found]
    assert [one["quarantine_partition"] for one in listed] == [0] * len(found)
    assert not any(one["replayed"] for one in listed)
    code, text = quarantine(site, "list", "--topics", "no-such-topic")
    assert (code, text) == (0, f"{site.flow}: no record is in {site.flow.quarantine_topic}\n")


def test_verify_counts_them_as_explained(site: Site, topic: str) -> None:
    """Nothing else is missing, and `translate` goes to the next copy."""
    now_ms = time.time_ns() // 1_000_000
    site.target.create_topic(f"{site.flow.source}.{topic}", 1)
    configure(site.source, topic, "message.timestamp.after.max.ms=9223372036854775807")
    offer(site, topic, [(b"k", b"1")], timestamp_ms=now_ms)
    offer(site, topic, [(b"k", b"2"), (b"k", b"3")], timestamp_ms=now_ms + 6 * HOUR_MS)
    offer(site, topic, [(b"k", b"4")], timestamp_ms=now_ms)
    with mirror(site.config(**TOLERANT), "--once") as running:
        assert running.wait() == 0, running.errors

    code, _, text = verify(site)

    assert code == 0, text
    assert "explained: 2 left out, and in the ledger" in text
    assert values(site, topic) == [b"1", b"4"]
    answers = [
        verb("translate", site.config(), site, topic, "0", str(offset)).strip()
        for offset in range(4)
    ]
    assert answers == ["0", "1", "1", "1"]


def test_refusals_that_cannot_be_foreseen_cost_no_process(site: Site, topic: str) -> None:
    """The copy becomes compacted while the flow runs: the search finds each record."""
    with mirror(site.config(**TOLERANT)) as running:
        running.wait_for("ready")
        offer(site, topic, [(b"k", b"first")])
        wait_until(lambda: values(site, topic) == [b"first"], within=WITHIN, what="the first copy")
        configure(site.target, f"{site.flow.source}.{topic}", "cleanup.policy=compact")
        records = [(b"k", b"first"), *mixed(300)]
        offer(site, topic, records[1:])
        wait_for_count(site, topic, len(records))
        assert running.stop() == 0, running.errors
        assert_no_process_ended(running)
        assert running.found("batch.refused"), "the refusal was foreseen: no search was tested"

    assert_split(site, topic, records)


def wait_for_count(site: Site, topic: str, count: int) -> None:
    """Wait until copy and quarantine have so many records together."""
    wait_until(
        lambda: len(values(site, topic)) + len(quarantined(site)) >= count,
        within=WITHIN,
        what="copy and quarantine",
    )


def has_moved(site: Site, count: int) -> bool:
    """Return whether more records than these are in the quarantine."""
    return len(quarantined(site)) > count


def test_tasks_that_are_killed_move_each_record_once(site: Site, topic: str) -> None:
    """Each record is in one of the two, once, whenever a task was killed."""
    records: list[Record] = []
    with mirror(site.config(**TOLERANT, tasks_max=1)) as running:
        running.wait_for("ready")
        configure(site.target, f"{site.flow.source}.{topic}", "cleanup.policy=compact")
        for round_ in range(4):
            more = mixed(60)
            offer(site, topic, more)
            records += more
            wait_until(
                partial(has_moved, site, 20 * round_), within=WITHIN, what="a record that is moved"
            )
            if round_ < 3:
                os.kill(running.pid(), signal.SIGKILL)
        wait_for_count(site, topic, len(records))
        assert running.stop() == 0, running.errors

    assert_split(site, topic, records)


def test_any_timestamp_and_size_is_accepted_there(site: Site, topic: str) -> None:
    """The quarantine takes what copies refuse, and keeps the timestamp as a header."""
    remote, now_ms = f"{site.flow.source}.{topic}", time.time_ns() // 1_000_000
    site.target.create_topic(remote, 1)
    configure(site.source, topic, "message.timestamp.after.max.ms=9223372036854775807")
    with mirror(site.config(**TOLERANT)) as running:
        running.wait_for("ready")
        configure(site.target, remote, "max.message.bytes=5000")
        offer(site, topic, [(b"k", b"early")], timestamp_ms=now_ms + 6 * HOUR_MS)
        offer(site, topic, [(b"k", b"x" * 9_000), (b"k", b"small")], timestamp_ms=now_ms)
        wait_for_count(site, topic, 3)
        assert running.stop() == 0, running.errors
        assert_no_process_ended(running)

    assert values(site, topic) == [b"small"]
    found = quarantined(site)
    assert [one.value for one in found] == [b"early", b"x" * 9_000]
    assert [one.code for one in found] == ["INVALID_TIMESTAMP", "MSG_SIZE_TOO_LARGE"]
    assert found[0].timestamp == now_ms + 6 * HOUR_MS


def test_a_queue_that_the_user_names_is_used(site: Site, topic: str) -> None:
    """It may exist, with several partitions; records of other programs in it are left out."""
    queue = f"{site.topic}-dead-letters"
    site.target.create_topic(queue, 3)
    offer(site, topic, mixed(9))
    configure(site.source, topic, "cleanup.policy=compact")

    config = site.config(**TOLERANT, errors_deadletterqueue_topic_name=queue)
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors

    assert sorted(one.offset for one in quarantined(site, queue, partitions=3)) == [1, 4, 7]
    assert site.flow.quarantine_topic not in topics_of(site.target)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"cleanup.policy": "compact"}, "it is compacted. Set its cleanup.policy to delete"),
        ({"max.message.bytes": "1000"}, "it accepts 1000 bytes. Raise its max.message.bytes to"),
    ],
    ids=["compacted", "small"],
)
def test_a_queue_that_would_refuse_records_refuses_the_start(
    site: Site, config: Mapping[str, str], why: str
) -> None:
    """One line names the topic and what to change; nothing was written."""
    queue = f"{site.topic}-dead-letters"
    site.target.create_topic(queue, 1, config=dict(config))

    with mirror(
        site.config(**TOLERANT, errors_deadletterqueue_topic_name=queue), "--once"
    ) as running:
        assert running.wait() == 2
    assert any(f"{queue} cannot be its quarantine: {why}" in line for line in running.errors)


def test_a_topic_whose_copy_would_be_the_quarantine_is_refused(site: Site, topic: str) -> None:
    """The other topics are mirrored."""
    config = site.config(
        **TOLERANT, errors_deadletterqueue_topic_name=f"{site.flow.source}.{topic}"
    )
    with mirror(config, "--once") as running:
        assert running.wait() == 1, running.errors
    (refused,) = running.found("topic.refused")
    assert refused["topic"] == topic
    assert "it is the quarantine" in refused["reason"]
