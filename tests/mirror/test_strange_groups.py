"""Groups that the client library cannot process: the offsets of the others are still synced."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.group_offsets import HAS_MEMBERS, NAMELESS
from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.command_line import groups, quiet_status
from tests.mirror.conftest import Site, make_site
from tests.mirror.group_sync import SYNCED, checkpoints, commit, mirrored, wait_moved, wait_rounds
from tests.mirror.raw import JOINS, LEAVES, commit_raw, streams_heartbeat
from tests.mirror.translation import Truth, everywhere

pytestmark = [pytest.mark.brokers, pytest.mark.long]

SOON = timedelta(seconds=60)
LENGTHS = range(1, 65)
"""Lengths of metadata: with some of them the client finds an end by chance."""


def read_beyond_its_end(site: Site, names: list[str]) -> bool:
    """Return whether the client library cannot decode the metadata of one of these groups."""
    admin = site.source.admin()
    for name in names:
        asked = [ConsumerGroupTopicPartitions(name)]
        answer = admin.list_consumer_group_offsets(asked)[name].result(10)
        for one in answer.topic_partitions or ():
            try:
                one.metadata  # noqa: B018 (a property that raises)
            except UnicodeDecodeError:
                return True
    return False


def test_metadata_of_java_clients_stops_no_group(site: Site) -> None:
    """
    Metadata that the client library cannot decode stops no group.

    Kafka Streams commits metadata with each offset. The client library reads past its end, and
    the bytes there may not be text.
    """
    site.produce(400)
    noted = {
        f"java-{length}-{site.topic}": {
            partition: (50, "m" * (length + partition.partition))
            for partition in everywhere(site, 50)
        }
        for length in LENGTHS[:: site.partitions]
    }
    for group, offsets in noted.items():
        commit_raw(site.source.admin(), group, offsets)
    wait_until(
        lambda: read_beyond_its_end(site, list(noted)),
        within=SOON,
        what="metadata that is no text; without it the fault is never hit",
    )

    config = site.config(**SYNCED, groups=f".*-{site.topic}")
    with mirrored(site, config) as running:
        wanted = Truth(site).of(everywhere(site, 50))
        for group in noted:
            wait_moved(site, group, wanted)
        wait_rounds(running, 5)
        assert not running.found("checkpoints.failed")

    assert groups(config).keys() == noted.keys()
    for group, offsets in noted.items():
        for remote, found in checkpoints(site, group).items():
            _, metadata = offsets[TopicPartition(site.topic, remote.partition)]
            assert found.metadata == "" or found.metadata.startswith(metadata)


def test_metadata_that_the_client_library_wrote_arrives_unchanged(site: Site) -> None:
    """Metadata of the client library ends with a NUL, so it arrives unchanged."""
    site.produce(400)
    commit(site.source, f"python-{site.topic}", everywhere(site, 50))
    with mirrored(site, site.config(**SYNCED, groups=f".*-{site.topic}")):
        wait_moved(site, f"python-{site.topic}", Truth(site).of(everywhere(site, 50)))

    found = checkpoints(site, f"python-{site.topic}")
    assert {one.metadata for one in found.values()} == {f"of python-{site.topic}"}


def test_groups_of_kafka_streams_are_synced_unless_they_run_on_the_target(site: Site) -> None:
    """The client library does not list groups of `group.protocol=streams`; they are synced, too."""
    group = f"streams-{site.topic}"
    site.produce(400)
    source, target = site.source.admin(), site.target.admin()
    streams_heartbeat(source, group, site.topic, epoch=JOINS)
    streams_heartbeat(source, group, site.topic, epoch=LEAVES)
    commit(site.source, group, everywhere(site, 50))
    listed = {one.group_id for one in source.list_consumer_groups().result(10).valid}
    assert group not in listed, "the client library lists it; the fault is never hit"

    config = site.config(**SYNCED, groups=f".*-{site.topic}")
    with mirrored(site, config) as running:
        truth = Truth(site)
        at = {n: truth.of(everywhere(site, n)) for n in (50, 90)}
        wait_moved(site, group, at[50])
        streams_heartbeat(target, group, site.remote, epoch=JOINS)
        commit(site.source, group, everywhere(site, 90))
        assert running.wait_for("group.waiting", group=group)["reason"] == HAS_MEMBERS
        streams_heartbeat(target, group, site.remote, epoch=LEAVES)
        wait_moved(site, group, at[90])
        assert not running.found("group.skipped")

    assert quiet_status(config, "--groups").splitlines() == [
        f"{site.flow}: 1 group, 0 behind on {site.flow.target}",
        f"  {group}: 4 partitions, in step",
    ]


@pytest.fixture(scope="module")
def odd(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A source that no other test reads: a group without a name cannot be deleted."""
    with KafkaCluster(name="odd") as cluster:
        yield cluster


def test_a_group_without_a_name_is_skipped_and_the_others_are_synced(
    tmp_path: Path, odd: KafkaCluster, target_cluster: Cluster
) -> None:
    """Brokers keep offsets of a nameless group for old clients; it is reported once."""
    site = make_site(tmp_path, odd, target_cluster)
    site.produce(400)
    nameless = dict.fromkeys(everywhere(site, 10), (10, ""))
    commit_raw(odd.admin(), "", nameless)
    commit(odd, "readers", everywhere(site, 50))
    config = site.config(**SYNCED)
    with mirrored(site, config) as running:
        truth = Truth(site)
        at = {n: truth.of(everywhere(site, n)) for n in (50, 90)}
        wait_moved(site, "readers", at[50])
        wait_rounds(running, 3)
        commit_raw(odd.admin(), "", nameless)  # detected immediately
        commit(odd, "readers", everywhere(site, 90))
        wait_moved(site, "readers", at[90])
        wait_rounds(running, 3)
        assert not running.found("checkpoints.failed")
        assert [(one["group"], one["reason"]) for one in running.found("group.skipped")] == [
            ("", NAMELESS)
        ]

    found = groups(config)
    assert found.keys() == {"", "readers"}
    assert found[""]["reason"] == NAMELESS
    assert found[""]["partitions"] == []
    assert not any(one["behind"] for one in found["readers"]["partitions"])
    assert quiet_status(config, "--groups").splitlines() == [
        f"{site.flow}: 2 groups, 0 behind on {site.flow.target}, 1 skipped",
        f"  (no name): skipped: {NAMELESS}",
        "  readers: 4 partitions, in step",
    ]


def test_a_filter_that_leaves_out_the_nameless_group_is_quiet(
    tmp_path: Path, odd: KafkaCluster, target_cluster: Cluster
) -> None:
    """`groups = .+` excludes the nameless group, so nothing is reported."""
    site = make_site(tmp_path, odd, target_cluster)
    site.produce(400)
    commit_raw(odd.admin(), "", dict.fromkeys(everywhere(site, 10), (10, "")))
    commit(odd, "known", everywhere(site, 50))
    config = site.config(**SYNCED, groups=".+")
    with mirrored(site, config) as running:
        wait_moved(site, "known", Truth(site).of(everywhere(site, 50)))
        wait_rounds(running, 3)
        assert not running.found("group.skipped")

    assert groups(config).keys() == {"known"}
