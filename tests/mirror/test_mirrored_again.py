"""A topic that is mirrored again from its start, as docs/operations.md says."""

from datetime import timedelta

import pytest

from eos_mirror.kafka.client import new_producer
from eos_mirror.kafka.topic_reader import read_compacted
from eos_mirror.kafka.topic_writer import append_records
from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.group_sync import SYNCED, commit, mirrored, wait_moved, wait_rounds
from tests.mirror.translation import Truth, everywhere

pytestmark = [pytest.mark.brokers, pytest.mark.long]

SOON = timedelta(seconds=30)
TRANSACTIONS = 10
"""At least so many commit markers are in each partition of the first copy."""


def forget_copy(site: Site) -> None:
    """Delete the remote topic, and its keys in the offset map."""
    admin = site.target.admin()
    admin.delete_topics([site.remote])[site.remote].result()
    wait_until(
        lambda: site.remote not in admin.list_topics(timeout=10).topics, within=SOON, what="no copy"
    )
    config, topic = site.target.client_config(), site.flow.offset_map_topic
    found = read_compacted(config, topic, group=site.flow.shadow_group)
    tombstones = [(key, None) for key in found if key.startswith(f'["{site.remote}",')]
    assert tombstones
    append_records(new_producer(dict(config)), topic, tombstones)


def test_groups_get_the_offsets_of_the_new_copy(site: Site) -> None:
    """It has fewer commit markers, so the checkpoints of the earlier one are too high in it."""
    group = f"readers of {site.topic}"
    config = site.config(**SYNCED)
    with mirrored(site, config):
        for _ in range(TRANSACTIONS):
            site.produce(200)
            site.wait_caught_up()
        commit(site.source, group, everywhere(site, 400))
        earlier = Truth(site).of(everywhere(site, 400))
        wait_moved(site, group, earlier)
    forget_copy(site)

    with mirrored(site, config) as running:
        wait_rounds(running)
        now = Truth(site).of(everywhere(site, 400))
        assert all(now[partition] < earlier[partition] for partition in now)
        wait_moved(site, group, now)
    assert site.compare().exact
