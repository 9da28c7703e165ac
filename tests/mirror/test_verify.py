"""`eos-mirror verify`: an exact copy is proven, and every difference is found."""

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.ledger import KafkaLedger
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.operate.translate import MapReader
from eos_mirror.testing import KafkaCluster, Record, wait_until
from eos_mirror.testing.checker import read_topic
from eos_mirror.testing.external import Cluster
from tests.mirror.broken.faults_by_partition import (
    AT,
    DOUBLED,
    EMPTY_KEY,
    FAR,
    FAR_APART,
    HEADER,
    LATE,
    LEFT_OUT,
    MISPLACED,
    MISSING,
    NEIGHBOURS,
    ORDER,
    STRANGER,
    VALUE,
    contents,
)
from tests.mirror.conftest import Site, make_site
from tests.mirror.proofs import DIFFERENT, ON_BOTH, SPARK, verify, with_folder
from tests.mirror.source_transactions import transact
from tests.mirror.surgery import delete_topic, produce_values
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers


@ON_BOTH
def test_an_exact_copy_is_proven_and_a_foreign_record_is_found(
    site: Site, place: Mapping[str, str]
) -> None:
    """A foreign record is found even after the last record of the mirror."""
    site.produce(20_000)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    code, (topic,), said = verify(site, place=place)
    assert code == 0, said
    assert topic["matched"] == 20_000

    producer = Producer(site.target.client_config())
    producer.produce(site.remote, b"not ours", partition=2)
    producer.flush(10)
    code, (topic,), said = verify(site, place=place)
    assert code == DIFFERENT, said
    (difference,) = [d for one in topic["partitions"] for d in one["differences"]]
    assert difference["kind"] == "foreign"
    assert difference["upstream_offset"] == 5_000
    assert f"foreign: {site.topic}-2 offset 5000" in said


@pytest.mark.long
def test_folds_are_those_of_anybody_who_reads_the_logs(site: Site) -> None:
    """Folds are reproducible from docs/digest.md and a consumer, even of a copy that differs."""
    site.produce(4_000)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    write(site.target, site.remote, [(3, (NOON, b"", None, [("a", None), ("b", b"1")]))])
    code, (topic,), said = verify(site, "--folds")
    assert code == DIFFERENT, said
    base = int(json.loads((site.folder / "report.json").read_text())[0]["base"])
    names = {"source": (site.source, site.topic), "target": (site.target, site.remote)}
    for side, (cluster, name) in names.items():
        logs = read_topic(cluster.client_config(), name, partitions=4)
        assert [one["folds"][side] for one in topic["partitions"]] == [
            {"count": len(records), "fold": str(fold_by_the_page(records, base))}
            for records in logs
        ]
    code, _, said = verify(site, "--folds", "--sample", "5%")
    assert code == 2
    assert "remove --resume, --sample and --watch" in said


def fold_by_the_page(records: Sequence[Record], base: int) -> int:
    """Compute a fold as docs/digest.md specifies, without the product's code."""
    value = 0
    for record in records:
        text = struct.pack(
            ">BBqiii",
            *(1, *record.timestamp),
            *(-1 if field is None else len(field) for field in (record.key, record.value)),
            len(record.headers),
        )
        text += (record.key or b"") + (record.value or b"")
        for name, content in record.headers:
            length = -1 if content is None else len(content)
            text += struct.pack(">ii", len(name.encode()), length) + name.encode()
            text += content or b""
        value = (value * base + int.from_bytes(hashlib.sha256(text).digest())) % (2**127 - 1)
    return value


@pytest.mark.long
def test_a_part_is_compared_by_the_times_of_its_records(site: Site) -> None:
    """A foreign record at the end is found only if the compared times include it."""
    records: list[tuple[int, tuple[Any, ...]]]
    records = [(p, (NOON + at, None, b"%d" % at, [])) for at in range(300) for p in range(4)]
    write(site.source, site.topic, records)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    write(site.target, site.remote, [(3, (NOON, None, b"not ours", []))])

    code, (topic,), said = verify(site, "--from", iso(NOON + 50), "--to", iso(NOON + 150))
    assert code == 0, said
    assert topic["matched"] == 4 * 100
    assert {tuple(one["upstream"]) for one in topic["partitions"]} == {(50, 150)}

    code, (topic,), said = verify(site, "--from", iso(NOON + 250))
    assert code == DIFFERENT, said
    assert topic["matched"] == 4 * 50
    (difference,) = [d for one in topic["partitions"] for d in one["differences"]]
    assert (difference["kind"], difference["upstream_offset"]) == ("foreign", 300)

    code, (topic,), said = verify(site, "--sample", "10%", "--to", iso(NOON + 150))
    assert code == 0, said
    assert topic["matched"] == 4 * 150, "a sample is a range at least"


def iso(at_ms: int) -> str:
    """Return a time in ISO format."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat()


FIRST, ALL, PARTITIONS = 4_000, 5_000, 13
NOON = 1_700_000_000_000


def write(cluster: Cluster, topic: str, records: list[tuple[int, tuple[Any, ...]]]) -> None:
    """Produce records into these partitions, in this order."""
    producer = Producer({**cluster.client_config(), "linger.ms": 5})
    for partition, (timestamp, key, value, headers) in records:
        producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
    assert producer.flush(30) == 0


def mirror_brokenly(site: Site) -> None:
    """Run a broken mirror until it has caught up."""
    config = site.config(data_path="client")  # each of its records can be broken
    with mirror(config, "--once", env=with_folder("broken")) as running:
        assert running.wait() == 0, running.errors


@pytest.mark.long
@pytest.mark.spark
def test_each_fault_of_a_broken_mirror_is_found_named_and_placed(
    tmp_path: Path, source_cluster: Cluster, target_cluster: Cluster
) -> None:
    """Eleven faults, one in a partition, are found; what the ledger explains is no difference."""
    site = make_site(tmp_path, source_cluster, target_cluster, partitions=PARTITIONS)
    for start, end in ((0, FIRST), (FIRST, ALL)):
        write(
            site.source,
            site.topic,
            [(p, contents(p, i)) for p in range(PARTITIONS) for i in range(start, end)],
        )
        mirror_brokenly(site)
        if end == FIRST:  # these two will be in the middle
            doubled = (DOUBLED, contents(DOUBLED, AT))
            write(site.target, site.remote, [doubled, (STRANGER, contents(MISPLACED, AT))])
    write(site.target, site.remote, [(STRANGER, (1, None, b"not ours", []))])
    note_left_out(site, LEFT_OUT)

    code, (topic,), said = verify(site, "--explain", place=SPARK)
    assert code == DIFFERENT, said
    found = [
        (one["partition"], difference)
        for one in topic["partitions"]
        for difference in one["differences"]
    ]
    reader = MapReader(flow=site.flow, client_config=site.target.client_config())

    def copy_of(partition: int, upstream: int) -> int:
        answer = reader.load(TopicPartition(site.remote, partition)).translate(upstream)
        assert isinstance(answer, int)
        return answer

    assert sorted(
        (where, one["kind"], one["upstream_offset"], one["downstream_offset"])
        for where, one in found
    ) == sorted(
        [
            (MISSING, "missing", AT, copy_of(MISSING, AT + 1)),
            (NEIGHBOURS, "reordered", AT, copy_of(NEIGHBOURS, AT + 1)),
            (FAR_APART, "reordered", AT, copy_of(FAR_APART, FAR)),
            (FAR_APART, "reordered", FAR, copy_of(FAR_APART, AT)),
            (DOUBLED, "duplicated", AT, copy_of(DOUBLED, FIRST) - 1),
            (MISPLACED, "wrong partition", AT, copy_of(STRANGER, FIRST) - 1),
            (STRANGER, "foreign", ALL, copy_of(STRANGER, ALL) + 1),
            *((p, "altered", AT, copy_of(p, AT)) for p in (VALUE, EMPTY_KEY, HEADER, ORDER, LATE)),
        ]
    ), said
    by_partition = dict(found)
    assert {p: by_partition[p]["fields"] for p in (VALUE, EMPTY_KEY, HEADER, ORDER, LATE)} == {
        VALUE: ["value"],
        EMPTY_KEY: ["key"],
        HEADER: ["headers"],
        ORDER: ["header order"],
        LATE: ["timestamp"],
    }
    assert by_partition[MISPLACED]["target_partition"] == STRANGER
    assert by_partition[VALUE]["source_record"]["value"] == "value 777 of 4"
    assert by_partition[VALUE]["target_record"]["value"] == "value 777 of !"
    assert topic["partitions"][LEFT_OUT]["explained"] == {"left out, and in the ledger": 1}


def note_left_out(site: Site, partition: int) -> None:
    """Write the ledger entry of a dropped record, as a task does, but afterwards."""
    metadata = ClusterMetadata(site.source.client_config(), side=Side.SOURCE)
    site.target.create_topic(site.flow.ledger_topic, 1)
    KafkaLedger(site.target.client_config(), site.flow.ledger_topic).append(
        Kind.DROP,
        {
            "task": 0,
            "partition": f"{site.topic}-{partition}",
            "topic_id": metadata.topics([site.topic])[site.topic].topic_id,
            "from": AT - 10,
            "to": AT + 10,
            "records": 1,
            "reason": "MSG_SIZE_TOO_LARGE",
        },
    )


COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": str(2**20),
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}


@pytest.fixture
def tidy(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A source whose log cleaner does not wait."""
    config = {"log.cleaner.backoff.ms": "100"}
    with KafkaCluster(name="tidy", broker_config=config) as cluster:
        yield cluster


@pytest.mark.long
def test_compaction_of_the_source_is_explained_and_a_stranger_is_not(
    tmp_path: Path, tidy: KafkaCluster, target_cluster: Cluster
) -> None:
    """Records that only the source compacted are explained; a foreign record is a difference."""
    site = make_site(tmp_path, tidy, target_cluster, partitions=1)
    compacted = Site(**{**vars(site), "topic": f"{site.topic}-compacted"})
    tidy.create_topic(compacted.topic, 1, config=COMPACTED)

    def turn(number: int) -> list[tuple[int, tuple[Any, ...]]]:
        keys = range(0, 500, 1 + number % 2)
        return [
            (0, (NOON + number * 1_000 + key, b"k%d" % key, b"%d" % number, [])) for key in keys
        ]

    for number in range(4):
        write(tidy, compacted.topic, turn(number))
        with mirror(compacted.config(), "--once") as running:
            assert running.wait() == 0, running.errors
    wait_until(
        lambda: sum(map(len, read_topic(tidy.client_config(), compacted.topic))) < 1_000,
        within=timedelta(seconds=30),
        what="the log cleaner",
    )

    code, (topic,), said = verify(compacted)
    assert code == 0, said
    explained = topic["partitions"][0]["explained"]
    assert explained["compacted on the source"] >= 750, said
    assert topic["matched"] + sum(explained.values()) == 1_500

    write(target_cluster, compacted.remote, [(0, (1, b"k7", b"not ours", []))])
    code, (topic,), said = verify(compacted)
    assert code == DIFFERENT, said
    (difference,) = topic["partitions"][0]["differences"]
    assert difference["kind"] == "foreign"


@pytest.mark.long
def test_what_nobody_promised_is_not_missed(site: Site) -> None:
    """Skipped, aborted and expired records are no differences, on either side."""
    site.produce(400)
    transact(site, [b"aborted"] * 9, commit=False)
    config = site.config(start_position="latest")
    with mirror(config) as running:
        running.wait_for("ready")
        site.produce(400, start=400)
        transact(site, [b"aborted"] * 9, commit=False)
        transact(site, [b"committed"] * 5, commit=True)
        site.wait_caught_up()
        assert running.stop() == 0, running.errors
    code, (topic,), said = verify(site)
    assert code == 0, said
    assert topic["matched"] == 405

    copied = read_topic(site.target.client_config(), site.remote, partitions=site.partitions)
    gone = sum(record.offset < 20 for record in copied[2])  # a commit marker may be among them
    for cluster, where in (
        (site.source, ClientPartition(site.topic, 1, 130)),
        (site.target, ClientPartition(site.remote, 2, 20)),
    ):
        for answer in cluster.admin().delete_records([where]).values():
            answer.result(10)
    code, (topic,), said = verify(site)
    assert code == 0, said
    assert topic["matched"] == 405 - 30 - gone
    unproven = [(one["partition"], *one["unproven"]) for one in topic["partitions"]]
    assert unproven[1][1] == {
        "start": 100, "end": 130, "cause": "expired on the source", "reason": "",
    }  # fmt: skip
    assert unproven[2][1] == {
        "start": 100, "end": 100 + gone, "cause": "expired on the target", "reason": "",
    }  # fmt: skip


@pytest.mark.long
def test_what_cannot_be_verified_is_said_in_a_line(site: Site) -> None:
    """A flow that never ran, a deleted copy and invalid options are each reported with a line."""
    code, _, said = verify(site)
    assert code == 2
    assert "nothing to verify" in said

    site.produce(400)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    code, _, said = verify(site, "--html", str(site.folder / "none" / "report.html"))
    assert code == 2
    assert "there is no folder" in said
    code, _, said = verify(site, "--topics", "[")
    assert code == 2
    assert "not a regular expression" in said
    code, _, said = verify(site, "--from", "2026-01-31T12:00:00")
    assert code == 2
    assert "with a zone" in said
    code, _, said = verify(site, "--sample", "0%")
    assert code == 2
    assert "expected a part of 100%" in said

    site.target.admin().delete_topics([site.remote])[site.remote].result(10)
    wait_until(
        lambda: site.remote not in site.target.admin().list_topics(timeout=5).topics,
        within=timedelta(seconds=20),
        what="the remote topic to be gone",
    )
    code, (topic,), said = verify(site)
    assert code == DIFFERENT
    assert len(topic["incomparable"]) == site.partitions
    assert f"{site.remote} is gone from {site.flow.target}" in said
    assert "Traceback" not in said


def test_a_topic_that_is_gone_is_left_out_once_it_is_not_configured_any_more(site: Site) -> None:
    """Otherwise every later proof would end with exit code 3."""
    other = f"{site.topic}-other"
    site.source.create_topic(other, 1)
    produce_values(site.source, other, [b"kept"])
    site.produce(400)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    delete_topic(site.source, site.topic)
    code, topics, said = verify(site)
    assert code == DIFFERENT
    assert f"{site.topic} is gone from {site.flow.source}" in said
    assert len(topics) == 2

    code, (left,), said = verify(site, change=lambda _: site.config(topics_exclude=site.topic))

    assert (code, left["source"], left["matched"]) == (0, other, 1), said
