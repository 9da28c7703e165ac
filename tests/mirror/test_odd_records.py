"""Our own lane carries records that the client library cannot, in whole batches and decoded."""

import time
from datetime import timedelta

import pytest

from eos_mirror.core.records import DecodedRun, Position, TopicPartition
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.waiting import wait_until
from eos_mirror.wire.cluster import Cluster as WireCluster
from eos_mirror.wire.fetcher import Fetcher, FetchSettings
from eos_mirror.wire.security import PLAINTEXT
from tests.mirror.conftest import Site
from tests.mirror.raw import RawRecord, produce_raw
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

NOW_MS = time.time_ns() // 1_000_000
ODD = [
    RawRecord(timestamp=0, key=b"k", value=b"at midnight"),
    RawRecord(timestamp=NOW_MS, value=b"no text", headers=[(b"\xff\xfe", b"\x00"), (b"", None)]),
    RawRecord(timestamp=NOW_MS, value=b"a nul", headers=[(b"a\x00b", b"1"), (b"a", b"2")]),
    RawRecord(timestamp=NOW_MS, key=b"", value=None),
]
ADDED = (b"via", b"mirror")
TRANSFORM = {
    "transforms": "mark",
    "transforms_mark_type": "org.apache.kafka.connect.transforms.InsertHeader",
    "transforms_mark_header": ADDED[0].decode(),
    "transforms_mark_value_literal": ADDED[1].decode(),
}


@pytest.mark.parametrize("is_decoded", [False, True], ids=["passed", "decoded"])
def test_our_own_lane_carries_odd_records(site: Site, *, is_decoded: bool) -> None:
    """Timestamp 0, header keys that are no UTF-8, and keys with a NUL arrive unchanged."""
    produce_raw(site.source.admin(), site.topic, 0, ODD)
    added = [ADDED] if is_decoded else []

    config = site.config(data_path="auto", **(TRANSFORM if is_decoded else {}))
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors

    (summary,) = running.found("flow.summary")[-1:]
    assert (summary["passed"] == 0) == is_decoded, summary
    assert read(site.target, TopicPartition(site.remote, 0), len(ODD)) == [
        RawRecord(
            timestamp=one.timestamp, key=one.key, value=one.value, headers=[*one.headers, *added]
        )
        for one in ODD
    ]


def read(cluster: Cluster, partition: TopicPartition, count: int) -> list[RawRecord]:
    """Return the records of a partition, with header keys as they are stored."""
    fetcher = Fetcher(
        WireCluster(cluster.bootstrap, PLAINTEXT, client_id="test"), FetchSettings(wait_ms=10)
    )
    runs: list[DecodedRun] = []

    def have_all() -> bool:
        polled = fetcher.take()
        runs.extend(run.decoded() for run in ([] if polled is None else polled.runs))
        return sum(run.count for run in runs) == count

    try:
        fetcher.start({partition: Position(0, None)})
        wait_until(have_all, within=timedelta(seconds=20), what=f"{count} records of {partition}")
    finally:
        fetcher.close()
    return [
        RawRecord(
            timestamp=ms,
            key=key,
            value=value,
            headers=[(name.encode(errors="surrogateescape"), one) for name, one in headers or ()],
        )
        for run in runs
        for ms, key, value, headers in zip(
            run.timestamps, run.keys, run.values, run.headers, strict=True
        )
    ]
