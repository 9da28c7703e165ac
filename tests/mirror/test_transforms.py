"""Transforms do what they do in a real MirrorMaker 2, exactly once, and `verify` knows them."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eos_mirror.testing import wait_until
from eos_mirror.testing.checker import read_topic
from eos_mirror.testing.external import Cluster
from tests.mirror.command_line import status_and_code
from tests.mirror.conftest import Site, make_site
from tests.mirror.java_mm2 import COPIES_WITHIN, running_mm2
from tests.mirror.proofs import DIFFERENT, verify
from tests.mirror.surgery import produce_values
from tests.mirror.takeovers import mm2_file
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

SMT = "org.apache.kafka.connect.transforms."
LIVE = f"""\
{{flow}}.transforms = live
{{flow}}.transforms.live.type = {SMT}Filter
{{flow}}.transforms.live.predicate = isTombstone
{{flow}}.predicates = isTombstone
{{flow}}.predicates.isTombstone.type = {SMT}predicates.RecordIsTombstone
"""
UNTAGGED = f"""\
{{flow}}.transforms = untag
{{flow}}.transforms.untag.type = {SMT}DropHeaders
{{flow}}.transforms.untag.headers = trace, span
{{flow}}.transforms.untag.predicate = isMine
{{flow}}.predicates = isMine
{{flow}}.predicates.isMine.type = {SMT}predicates.TopicNameMatches
{{flow}}.predicates.isMine.pattern = .*orders.*
"""
MARKED = f"""\
{{flow}}.transforms = mark
{{flow}}.transforms.mark.type = {SMT}InsertHeader
{{flow}}.transforms.mark.header = copied-from
{{flow}}.transforms.mark.value.literal = west one
{{flow}}.transforms.mark.predicate = isTraced
{{flow}}.transforms.mark.negate = true
{{flow}}.predicates = isTraced
{{flow}}.predicates.isTraced.type = {SMT}predicates.HasHeaderKey
{{flow}}.predicates.isTraced.name = trace
header.converter = org.apache.kafka.connect.storage.StringConverter
"""
"""MirrorMaker 2 needs this converter for the text, and writes other headers as Java objects."""

ROUTED = f"""\
{{flow}}.transforms = live, lake
{{flow}}.transforms.live.type = {SMT}Filter
{{flow}}.transforms.live.predicate = isTombstone
{{flow}}.transforms.lake.type = {SMT}RegexRouter
{{flow}}.transforms.lake.regex = (.*)\\\\.(orders.*)
{{flow}}.transforms.lake.replacement = $1-lake-$2
{{flow}}.predicates = isTombstone
{{flow}}.predicates.isTombstone.type = {SMT}predicates.RecordIsTombstone
"""

RECORDS = 1_000


@pytest.fixture
def site(tmp_path: Path, source_cluster: Cluster, target_cluster: Cluster) -> Site:
    """A topic of two partitions, in which every third record is a tombstone."""
    site = make_site(tmp_path, source_cluster, target_cluster, partitions=2)
    produce(site)
    return site


def produce(site: Site) -> None:
    """Produce tombstones and records with several headers, one header, and none."""
    producer = Producer(site.source.client_config())
    for number in range(RECORDS):
        value = None if number % 3 == 0 else b"value-%d" % number
        headers: list[tuple[str, str | bytes | None]] = [
            ("trace", b"a"),
            ("kept", b"b"),
            ("span", b"c"),
            ("trace", b"d"),
        ]
        producer.produce(
            site.topic, value, b"k%d" % number, number % 2, timestamp=1_700_000_000_000 + number,
            headers=headers[: number % 5],
        )  # fmt: skip
    producer.flush(30)


def config(site: Site, text: str, **more: object) -> Path:
    """Write the configuration of the flow with these transforms."""
    file = site.config(**more)
    with file.open("a") as out:
        out.write(text.format(flow=site.flow))
    return file


def copies(site: Site, remote: str = "") -> list[list[tuple[object, ...]]]:
    """Return the records of the copy, by partition."""
    found = read_topic(site.target.client_config(), remote or site.remote, partitions=2)
    return [[(one.key, one.value, one.headers, one.timestamp) for one in part] for part in found]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param(LIVE, RECORDS * 2 // 3, id="filter"),
        pytest.param(UNTAGGED, RECORDS, id="drop headers"),
        pytest.param(MARKED, RECORDS, id="insert header"),
    ],
)
def test_a_copy_is_that_of_mirrormaker_2(site: Site, text: str, left: int) -> None:
    """Key, value, headers, timestamp and order of each record, byte for byte."""
    java = Site(**{**vars(site), "flow": type(site.flow)(f"j{site.flow.source}", site.flow.target)})
    file = mm2_file(java, exactly_once=False, more=text.replace("{flow}", "{source}->{target}"))
    with running_mm2(file, site.folder / "java.log"):
        wait_until(
            lambda: _count(java) >= left,
            within=COPIES_WITHIN,
            what=f"{left} records of MirrorMaker 2",
        )
    with mirror(config(site, text), "--once") as running:
        assert running.wait(within_s=90) == 0, running.errors
    ours, theirs = copies(site), copies(java)
    if text == MARKED:  # where the record had no headers, and both write the same
        ours, theirs = ([_marked(part) for part in one] for one in (ours, theirs))
        assert sum(map(len, ours)) == RECORDS // 5
    else:
        assert sum(map(len, ours)) == left
    assert ours == theirs


def routed(site: Site) -> str:
    """Return the name that the router gives the copy."""
    return f"{site.flow.source}-lake-{site.topic}"


def test_a_router_sends_the_records_where_mirrormaker_2_does(site: Site) -> None:
    """They are those that the filter before it left. `verify` and `status` know the new name."""
    java = Site(**{**vars(site), "flow": type(site.flow)(f"j{site.flow.source}", site.flow.target)})
    site.target.create_topic(routed(java), 2)  # MirrorMaker 2 creates the topic without a router
    file = mm2_file(java, exactly_once=False, more=ROUTED.replace("{flow}", "{source}->{target}"))
    left = RECORDS * 2 // 3
    with running_mm2(file, site.folder / "java.log"):
        wait_until(
            lambda: sum(map(len, copies(java, routed(java)))) >= left,
            within=COPIES_WITHIN,
            what=f"{left} records of MirrorMaker 2",
        )
    with mirror(config(site, ROUTED), "--once") as running:
        assert running.wait(within_s=90) == 0, running.errors

    assert copies(site, routed(site)) == copies(java, routed(java))
    assert site.remote not in site.target.admin().list_topics(timeout=10).topics
    code, (topic,), said = verify(site, change=lambda _: config(site, ROUTED))
    assert (code, topic["matched"]) == (0, left), said
    text, code = status_and_code(config(site, ROUTED), "--json")
    assert {p["remote"] for p in json.loads(text)["partitions"]} == {
        f"{routed(site)}-{p}" for p in range(2)
    }


def test_a_renamed_topic_has_two_copies_and_both_are_verified(site: Site) -> None:
    """A record of another client in the former copy is found, too."""
    for text in (LIVE, ROUTED):
        with mirror(config(site, text), "--once") as running:
            assert running.wait(within_s=90) == 0, running.errors
    code, topics, said = verify(site, change=lambda _: config(site, ROUTED))
    left = RECORDS * 2 // 3
    assert code == 0, said
    assert [(one["target"], one["matched"]) for one in topics] == [
        (routed(site), left),
        (site.remote, left),
    ]
    produce_values(site.target, site.remote, [b"foreign"])

    code, topics, said = verify(site, change=lambda _: config(site, ROUTED))

    assert code == DIFFERENT, said
    assert [len(one["partitions"][0]["differences"]) for one in topics] == [0, 1]


def _marked(part: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [one for one in part if one[2] == (("copied-from", b"west one"),)]


def _count(java: Site) -> int:
    if java.remote not in java.target.admin().list_topics(timeout=10).topics:
        return 0
    return sum(map(len, copies(java)))


def test_dropped_records_are_no_lag_and_no_difference(site: Site) -> None:
    """`verify` counts them, also at both ends of a partition; without transforms it misses them."""
    producer = Producer(site.source.client_config())
    for number in range(20):
        producer.produce(site.topic, None, b"last", number % 2)
    producer.flush(30)
    file = config(site, LIVE)
    with mirror(file) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        assert running.stop() == 0, running.errors
    left = sum(1 for number in range(RECORDS) if number % 3)
    dropped = RECORDS + 20 - left
    assert sum(map(len, copies(site))) == left

    code, (topic,), said = verify(site, change=lambda _: config(site, LIVE))
    assert code == 0, said
    assert (topic["matched"], topic["filtered"], topic["expanded"]) == (left, dropped, 0)
    assert [one["filtered"] for one in topic["partitions"]] == [dropped // 2] * 2
    assert not any(one["unproven"] for one in topic["partitions"])
    assert f"{site.flow}: {left} records match, {dropped} filtered, no difference\n" in said
    code, (topic,), said = verify(site)
    assert code == DIFFERENT, said
    assert topic["filtered"] == 0
    kinds = {one["kind"] for p in topic["partitions"] for one in p["differences"]}
    assert kinds == {"missing"}


def test_a_killed_run_drops_and_keeps_the_same_records_again(site: Site) -> None:
    """Nothing comes twice, and nothing is missing but what is dropped."""
    file = config(site, LIVE)
    with mirror(file) as running:
        running.wait_for("ready")
        produce(site)
        running.kill()
    produce(site)
    with mirror(file, "--once") as running:
        assert running.wait(within_s=90) == 0, running.errors
    wanted = [
        [b"value-%d" % n for _ in range(3) for n in range(RECORDS) if n % 2 == p and n % 3]
        for p in range(2)
    ]
    assert [[value for _, value, _, _ in part] for part in copies(site)] == wanted
