"""Groups that the client library cannot deal with: the others are synced all the same."""

from datetime import timedelta

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.raw import commit_raw
from tests.mirror.test_checkpoints import (
    SYNCED,
    Truth,
    checkpoints,
    commit,
    everywhere,
    mirrored,
    wait_moved,
    wait_rounds,
)
from tests.mirror.test_group_status import groups

pytestmark = pytest.mark.brokers

SOON = timedelta(seconds=60)
LENGTHS = range(1, 65)
"""Of metadata: some end where the client finds an end by chance."""


def read_beyond_its_end(site: Site, names: list[str]) -> bool:
    """Whether the client library makes no text of what a Java client noted with an offset."""
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
    Kafka Streams notes something with each offset. The client library reads beyond its end, and
    what it finds there may be no text.
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
        what="metadata that is no text: else the fault is never hit",
    )

    config = site.config(**SYNCED, groups=f".*-{site.topic}")
    with mirrored(site, config) as running:
        wanted = Truth(site).of(everywhere(site, 50))
        for group in noted:
            wait_moved(site, group, wanted)
        wait_rounds(running, 5)
        assert not running.found("groups.failed")

    assert groups(config).keys() == noted.keys()
    for group, offsets in noted.items():
        for remote, found in checkpoints(site, group).items():
            _, metadata = offsets[TopicPartition(site.topic, remote.partition)]
            assert found.metadata == "" or found.metadata.startswith(metadata)


def test_metadata_that_the_client_library_wrote_arrives_unchanged(site: Site) -> None:
    """It ends with a NUL, so the client finds its end."""
    site.produce(400)
    commit(site.source, f"python-{site.topic}", everywhere(site, 50))
    with mirrored(site, site.config(**SYNCED, groups=f".*-{site.topic}")):
        wait_moved(site, f"python-{site.topic}", Truth(site).of(everywhere(site, 50)))

    found = checkpoints(site, f"python-{site.topic}")
    assert {one.metadata for one in found.values()} == {f"of python-{site.topic}"}
