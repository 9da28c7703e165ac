"""Each topic begins where `start.position` says, and keeps what was decided."""

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import read_topic
from tests.mirror.conftest import Site
from tests.mirror.group_sync import commit
from tests.mirror.surgery import produce_values
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

COUNT = 20
FIRST = {
    "all": 0,
    "late": COUNT,
    "few": COUNT - 5,
    "some": 7,
    "read": 11,
}
"""By topic: how many records are not copied."""


@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly-once", "at-least-once"])
def test_each_topic_begins_where_its_pattern_says(site: Site, exactly_once: bool) -> None:
    """Records that are written later are copied from every topic."""
    prefix = site.topic
    topics = {name: f"{prefix}.{name}" for name in FIRST}
    values = [b"%d" % number for number in range(COUNT)]
    for topic in topics.values():
        site.source.create_topic(topic, 1)
        produce_values(site.source, topic, values)
    group = f"readers-{prefix}"
    commit(site.source, group, {TopicPartition(topics["read"], 0): FIRST["read"]})
    config = site.config(
        transaction_producer=exactly_once,
        start_position=f"{topics['late']}=latest, .*few=last:5, .*some=offset:7, "
        f".*read=group:{group}",
    )

    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors
    for topic in topics.values():
        produce_values(site.source, topic, [b"later"])
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors

    copied = {
        name: [one.value for one in read_topic(site.target.client_config(), remote)[0]]
        for name, remote in ((n, f"{site.flow.source}.{t}") for n, t in topics.items())
    }
    assert copied == {name: [*values[first:], b"later"] for name, first in FIRST.items()}
