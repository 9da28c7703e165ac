"""Topics are paused and resumed while a flow runs, and while it does not; nothing is doubled."""

from datetime import timedelta

import pytest

from eos_mirror.testing import wait_until
from tests.mirror.command_line import CONFIGURATION, ends, fails, status_and_code, verb
from tests.mirror.conftest import Site
from tests.mirror.refused_records import configure, offer
from tests.mirror.toolbox import mirror, produce

pytestmark = pytest.mark.brokers

RECORDS = 400
SOON = timedelta(seconds=30)
OFTEN = {"refresh_topics_interval_seconds": 1, "session_timeout_ms": 6_000}


def other_of(site: Site) -> Site:
    """Create a second topic of the flow."""
    other = Site(**{**vars(site), "topic": f"{site.topic}-other"})
    site.source.create_topic(other.topic, other.partitions)
    return other


def wait_for_copies(site: Site, count: int) -> None:
    """Wait until the copy has this many records."""
    wait_until(
        lambda: sum(map(len, site.values())) == count, within=SOON, what=f"{count} in {site.remote}"
    )


def produce_into(*sites: Site, start: int = 0) -> None:
    """Produce records into the topics of these sites."""
    for one in sites:
        produce(one.source, one.topic, RECORDS, partitions=one.partitions, start=start)


@pytest.mark.parametrize("words", [("pause", "paused", "resume"), ("stop", "stopped", "start")])
@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("true", id="exactly once"),
        pytest.param("false", id="at least once", marks=pytest.mark.long),
    ],
)
def test_a_paused_or_stopped_topic_stands_still_while_others_grow(
    site: Site, mode: str, words: tuple[str, str, str]
) -> None:
    """It continues where it stopped. `status` names who ordered it; the flow is ready all along."""
    pause, paused, resume = words
    other = other_of(site)
    config = site.config(**OFTEN, transaction_producer=mode)
    produce_into(site, other)
    with mirror(config) as running:
        running.wait_for("ready")
        for one in (site, other):
            wait_for_copies(one, RECORDS)

        said = verb(pause, config, site, "--topics", other.topic, "--reason", "upgrade of B")
        assert said == f"{site.flow}: {other.topic} {paused}; 4 partitions paused or stopped now\n"
        heard = running.wait_for(f"topics.{paused}", topics=other.topic, reason="upgrade of B")
        assert "@" in heard["by"]
        produce_into(site, other, start=RECORDS)
        wait_for_copies(site, 2 * RECORDS)
        assert sum(map(len, other.values())) == RECORDS
        shown, code = status_and_code(config)
        assert (code, f"  {other.topic}: {paused} since " in shown) == (0, True), shown
        assert ": upgrade of B\n" in shown

        said = verb(resume, config, site)
        assert said == f"{site.flow}: all topics running; 0 partitions paused or stopped now\n"
        wait_for_copies(other, 2 * RECORDS)
        assert not running.found("degraded")
        assert not running.found("task.restarting")
        assert running.stop() == 0, running.errors
    for one in (site, other):
        assert one.compare().exact


@pytest.mark.long
def test_a_pause_survives_a_kill_and_is_ordered_without_a_run(site: Site) -> None:
    """The order is on the target: every later run reads it before its first record."""
    other = other_of(site)
    config = site.config(**OFTEN)
    produce_into(site, other)
    with mirror(config) as first:
        first.wait_for("ready")
        wait_for_copies(other, RECORDS)
        verb("pause", config, site, "--topics", ".*-other")
        first.kill()
    produce_into(site, other, start=RECORDS)
    with mirror(config) as second:
        second.wait_for("ready")
        wait_for_copies(site, 2 * RECORDS)
        assert sum(map(len, other.values())) == RECORDS
        assert second.stop() == 0, second.errors

    said = verb("resume", config, site)
    assert said == f"{site.flow}: all topics running as soon as the flow runs\n"
    with mirror(config) as third:
        wait_for_copies(other, 2 * RECORDS)
        assert third.stop() == 0, third.errors
    for one in (site, other):
        assert one.compare().exact


@pytest.mark.long
def test_a_stopped_partition_is_tried_again_when_an_operator_asks(site: Site) -> None:
    """Its cause is gone, and its next try would come later."""
    remote = f"{site.flow.source}.{site.topic}"
    config = site.config(**OFTEN)
    with mirror(config) as running:
        running.wait_for("ready")
        configure(site.target, remote, "max.message.bytes=2000")
        offer(site, site.topic, [(b"k", b"x" * 5_000)])
        running.wait_for("partition.stopped")
        configure(site.target, remote, "max.message.bytes=20000")
        said = verb("retry", config, site)
        assert said == f"{site.flow}: stopped partitions are tried again; see `eos-mirror status`\n"
        running.wait_for("ready", count=2)
        assert running.stop() == 0, running.errors
    assert site.compare().exact


def test_an_order_needs_the_target_only(site: Site) -> None:
    """It is given in an outage of the source, too. A wrong pattern is one line."""
    config = site.config()
    config.write_text(config.read_text().replace(site.source.bootstrap, "127.0.0.1:9"))

    said = verb("pause", config, site)
    assert said == f"{site.flow}: all topics paused as soon as the flow runs\n"
    code, lines = fails("pause", str(config), str(site.flow), "--topics", "(")
    assert code == CONFIGURATION
    assert len(lines) == 1
    assert "--topics (: no regular expression" in lines[0]


def test_a_pattern_that_matches_no_topic_is_noted(site: Site) -> None:
    """It may be a typing error. The order counts all the same, also for later topics."""
    config = site.config(**OFTEN)
    site.produce(RECORDS)
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors

    for topics, lines in ((f"{site.topic}s", 1), (f"{site.topic}.*", 0)):
        code, said, errors = ends("pause", str(config), str(site.flow), "--topics", topics)
        assert code == 0, errors
        assert said == f"{site.flow}: {topics} paused as soon as the flow runs\n"
        assert [f"no topic that is mirrored now matches {topics}" in one for one in errors] == [
            True
        ] * lines
