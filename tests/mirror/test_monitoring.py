"""Boards over a real run: a real Prometheus scrapes it, and its answers are what was counted."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import set_group_offsets
from eos_mirror.ports import GroupOffset
from eos_mirror.testing import wait_until
from tests.delivery import board, strimzi
from tests.mirror.command_line import verb
from tests.mirror.conftest import Site
from tests.mirror.prometheus import Prometheus, needs_prometheus, prometheus
from tests.mirror.toolbox import Mirror, mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long, needs_prometheus]

RECORDS = 2_000
PROMISES = 20
SOON = timedelta(seconds=60)
MM2: Final = "kafka_connect_mirror_mirrorsourceconnector_"
NEW: Final = "kafka_connect_plugins_"
ONLY_IF_NOT_MIRRORED: Final = board.NOT_MIRRORED
"""The condition of the only query that finds nothing while everything is mirrored."""


@dataclass(frozen=True, kw_only=True)
class Scraped:
    """A run that has mirrored `RECORDS` records, and the Prometheus that scrapes it."""

    site: Site
    config: Path
    running: Mirror
    server: Prometheus

    def shows(self, expression: str, wanted: Mapping[str, float]) -> None:
        """Wait until an expression has these values by partition of the remote topic."""
        found: dict[str, float] = {}

        def is_shown() -> bool:
            found.clear()
            found.update(self.server.by("partition", f"sum by (partition) ({expression})"))
            return found == wanted

        try:
            wait_until(is_shown, within=SOON, what=f"{expression}: {wanted}")
        except TimeoutError as exc:
            exc.add_note(f"it is {found}")
            raise

    def counted(self, of: Callable[[bytes | None], int] = lambda _: 1) -> dict[str, float]:
        """Return the records that a reader of the copy sees, or their sum, by partition."""
        return {str(p): sum(map(of, values)) for p, values in enumerate(self.site.values())}

    def unanswered(self, queries: Collection[str]) -> set[str]:
        """Return the queries without data now."""
        return {query for query in queries if not self.server.query(query)}

    def answers(self, queries: Collection[str]) -> None:
        """Wait until each query has had data."""
        left = set(queries)

        def is_done() -> bool:
            left.intersection_update(self.unanswered(left))
            return not left

        try:
            wait_until(is_done, within=SOON, what="data for every query")
        except TimeoutError as exc:
            exc.add_note(f"without data: {sorted(left)}")
            raise

    def order(self, name: str, event: str) -> None:
        """Give an order about the topic, and wait until it is obeyed."""
        verb(name, self.config, self.site, "--topics", self.site.topic)
        self.running.wait_for(event)


@pytest.fixture
def scraped(site: Site, tmp_path: Path) -> Iterator[Scraped]:
    """A run with both names of each metric and one group, whose topic was mirrored."""
    group = f"readers of {site.topic}"
    config = site.config(
        data_path="client",  # our own lane counts the bytes of batches
        metrics_exporters="prometheus",
        metrics_listener="127.0.0.1:0",
        metric_names_formats="legacy,new",
        emit_checkpoints_enabled="true",
        emit_checkpoints_interval_seconds=1,
        groups=group,
    )
    site.produce(RECORDS)
    offset = GroupOffset(position=Position(7, None), metadata="")
    offsets = {TopicPartition(site.topic, p): offset for p in range(site.partitions)}
    set_group_offsets(site.source.admin(), group, offsets, side=Side.SOURCE)
    with mirror(config) as running:
        page = running.wait_for("metrics.listening")["address"]
        site.wait_caught_up()
        with prometheus(tmp_path, page) as server:
            yield Scraped(site=site, config=config, running=running, server=server)
        assert running.stop() == 0, running.errors


def size_of(value: bytes | None) -> int:
    """Return the bytes of a value."""
    return len(value or b"")


def test_counts_and_bytes_are_those_of_the_copy(scraped: Scraped) -> None:
    """Both names of a metric show what a reader of the copy counts, under Strimzi's labels."""
    counted, sizes = scraped.counted(), scraped.counted(size_of)
    assert sum(counted.values()) == RECORDS
    for name in (MM2, NEW):
        scraped.shows(f"{name}record_count{strimzi.SELECTED}", counted)
        scraped.shows(f"{name}byte_count{strimzi.SELECTED}", sizes)
    (attributes,) = scraped.server.query(f"group by (connector, task) ({NEW}record_count)")
    assert dict(attributes) == {"connector": "MirrorSourceConnector", "task": "0"}
    assert scraped.server.number("sum(eos_mirror_records_total)") == RECORDS
    assert scraped.server.number("sum(eos_mirror_bytes_total)") == sum(sizes.values())


def test_the_lag_of_a_paused_topic_is_what_was_produced(scraped: Scraped) -> None:
    """Nothing of it is mirrored; then the lag is gone and the counts are those of all records."""
    counted = scraped.counted()
    scraped.shows(f"eos_mirror_lag_records{strimzi.SELECTED}", dict.fromkeys(counted, 0))

    scraped.order("pause", "topics.paused")
    scraped.site.produce(RECORDS, start=RECORDS)
    scraped.shows(f"eos_mirror_lag_records{strimzi.SELECTED}", counted)
    scraped.shows("eos_mirror_lag_bytes", scraped.counted(size_of))
    scraped.shows(f"{MM2}record_count", counted)
    states = scraped.server.by("state", "count by (state) (eos_mirror_partition_state)")
    assert states == {"paused": scraped.site.partitions}

    scraped.order("resume", "topics.resumed")
    scraped.shows("eos_mirror_lag_records", dict.fromkeys(counted, 0))
    twice = scraped.counted()
    assert sum(twice.values()) == 2 * RECORDS
    scraped.shows(f"{MM2}record_count", twice)


def test_the_page_keeps_its_promises_about_strimzis_board(scraped: Scraped) -> None:
    """Every query that the table of docs/monitoring.md promises to answer has data, no other."""
    promised = {query for _, query in strimzi.promised()}
    assert len(promised) >= PROMISES, "the table is read wrongly"

    scraped.site.produce(RECORDS, start=RECORDS)  # without a commit there is no mean of commits
    scraped.answers(promised)

    missing = strimzi.missing()
    assert missing
    assert scraped.unanswered(missing) == missing
    for counted in (
        "count(group by (source, target) (eos_mirror_partitions_stopped))",
        "count(eos_mirror_partitions_owned)",
    ):
        assert counted in promised
        assert scraped.server.number(counted) == 1


def test_every_panel_of_the_board_has_data(scraped: Scraped) -> None:
    """While everything is mirrored, only the table of what is not mirrored is empty."""
    queries = set(board.queries())
    of_others = {query for query in queries if ONLY_IF_NOT_MIRRORED in query}
    assert of_others

    scraped.site.produce(RECORDS, start=RECORDS)  # without a commit there is no mean of commits
    scraped.answers(queries - of_others)
    assert scraped.unanswered(of_others) == of_others

    scraped.order("pause", "topics.paused")
    scraped.answers(of_others)
