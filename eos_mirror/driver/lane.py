"""The lane of a task, for a command or a check that fences."""

from eos_mirror.core.messages import TaskConfig
from eos_mirror.kafka.lane import KafkaLane


def lane_of(config: TaskConfig) -> KafkaLane:
    """Return the lane of a task with this configuration."""
    return KafkaLane(
        config.mirror.flow,
        consumer_config=config.clients.source_consumer,
        producer_config=config.clients.target_producer,
        plain_producer_config=config.clients.plain_producer,
        client_config=config.clients.target_admin,
    )
