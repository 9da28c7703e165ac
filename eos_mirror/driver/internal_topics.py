"""The topics of a flow on the target that are not copies, as its start creates them."""

from collections.abc import Iterator

from eos_mirror.driver.quarantine import quarantine_spec
from eos_mirror.kafka.connect_offsets import offsets_topic_spec
from eos_mirror.kafka.topics import TopicSpec
from eos_mirror.settings.clients import positions_of
from eos_mirror.settings.model import FlowSettings

INTERNAL_CONFIG = {"cleanup.policy": "compact", "unclean.leader.election.enable": "false"}
MAP_MESSAGE_BYTES = str(16 * 1024 * 1024)
"""If the source offsets have many gaps, one transaction writes a large segment."""


def internal_topics(settings: FlowSettings) -> Iterator[TopicSpec]:
    """Yield the topics without which no task can run."""
    flow, factor = settings.flow, settings.internal_topic_replication_factor
    config = {**INTERNAL_CONFIG, **settings.min_in_sync}
    configs = {flow.claims_topic: config}
    if settings.exactly_once:
        configs[flow.offset_map_topic] = {**config, "max.message.bytes": MAP_MESSAGE_BYTES}
    for name, entries in configs.items():
        yield TopicSpec(name=name, partitions=1, replication_factor=factor, config=entries)
    if settings.is_source_connector:
        yield offsets_topic_spec(positions_of(settings).topic, replication_factor=factor)
    if settings.quarantine is not None:
        yield quarantine_spec(settings, settings.quarantine)
