"""A topic that is mirrored again, from its start or from a position that was set back."""

from datetime import timedelta

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.client import new_producer
from eos_mirror.kafka.topic_reader import read_compacted
from eos_mirror.kafka.topic_writer import append_records
from eos_mirror.testing import wait_until
from eos_mirror.testing.checker import read_topic
from tests.mirror.conftest import Site
from tests.mirror.group_sync import SYNCED, commit, mirrored, wait_moved, wait_rounds
from tests.mirror.killed_verb import verb
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


def test_groups_continue_in_the_second_copies_after_a_step_back(site: Site) -> None:
    """The checkpoint task runs all the time, and begins with the new map when that is written."""
    group, first = f"readers of {site.topic}", TopicPartition(site.remote, 0)
    config, back, at = site.config(**SYNCED), 20, 100
    with mirrored(site, config) as running:
        for _ in range(TRANSACTIONS):
            site.produce(80)
            site.wait_caught_up()
        commit(site.source, group, everywhere(site, at))
        wait_moved(site, group, Truth(site).of(everywhere(site, at)))
        where = (str(config), str(site.flow), site.topic, "0", "--to", str(back))
        done = verb("offsets", "set", *where, "--accept-duplicates", "--yes")
        assert done.returncode == 0, done.stderr
        site.wait_caught_up()
        wait_rounds(running)
        sources = Truth(site).records(0)
        copies = read_topic(site.target.client_config(), site.remote, partitions=site.partitions)
        second = copies[0][len(sources) :]
        assert [one.value for one in second] == [one.value for one in sources[back:]]
        wait_moved(site, group, {first: second[at - back].offset})
        assert not running.found("groups.untranslated")
