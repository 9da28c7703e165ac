"""Topics of a real cluster."""

import uuid

import pytest

from eos_mirror.errors import ConfigError
from eos_mirror.kafka.topics import Topics, TopicSpec
from eos_mirror.testing.external import Cluster

pytestmark = pytest.mark.brokers


def test_an_entry_that_the_cluster_does_not_know_is_named_with_the_way_out(
    target_cluster: Cluster,
) -> None:
    """As message.format.version of an old source, for a target of today."""
    name = f"strange-{uuid.uuid4().hex[:8]}"
    config = {"message.format.version": "2.8"}
    spec = TopicSpec(name=name, partitions=1, replication_factor=1, config=config)
    topics = Topics(target_cluster.client_config(), source=False)
    with pytest.raises(ConfigError, match=r"message\.format\.version.*config\.properties\.exclude"):
        topics.create([spec], validate_only=True)
    assert name not in topics.list()


def test_more_topics_than_a_controller_takes_at_once_are_asked_for_in_portions(
    target_cluster: Cluster,
) -> None:
    """It makes at most 10,000 records of metadata for one request; nothing is created here."""
    topics = Topics(target_cluster.client_config(), source=False)
    config = {"retention.ms": "-1", "retention.bytes": "-1"}
    specs = [
        TopicSpec(name=f"many-{number}", partitions=2, replication_factor=1, config=config)
        for number in range(2_500)
    ]
    topics.create(specs, validate_only=True)
