"""Limits of the topics that a task writes, from the topic configuration."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, ResourceType

from eos_mirror.core.topic_limits import TopicLimits, limits_of
from eos_mirror.kafka.deadline import GRACE_S, Deadline
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.metadata import MISSING, ClusterMetadata
from eos_mirror.kafka.retry import retrying

AT_ONCE: Final = 500
UNKNOWN: Final = MISSING | {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}
"""Without an answer no limit is known; the broker still refuses what it does not accept."""


def read_limits(metadata: ClusterMetadata, topics: Collection[str]) -> Mapping[str, TopicLimits]:
    """
    Return limits by topic. A topic that is missing, or may not be described, is absent.

    Raises:
        TargetUnavailable: The target did not answer within the client's `patience`.
    """
    names = sorted(topics)
    found: dict[str, TopicLimits] = {}
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        found.update(retrying(partial(_read, metadata, some), within=metadata.patience))
    return found


def _read(
    metadata: ClusterMetadata, topics: Collection[str], deadline: Deadline
) -> dict[str, TopicLimits]:
    found: dict[str, TopicLimits] = {}
    answer_s = deadline.answer_s
    with translated("describe topic configurations", of=metadata.connection):
        answers = metadata.admin.describe_configs(
            [ConfigResource(ResourceType.TOPIC, name) for name in topics],
            request_timeout=answer_s,
        )
        for resource, answer in answers.items():
            try:
                entries = answer.result(answer_s + GRACE_S)
            except KafkaException as exc:
                if exc.args[0].code() not in UNKNOWN:
                    raise
                continue
            config = {name: entry.value for name, entry in entries.items() if entry.value}
            found[resource.name] = limits_of(config)
    return found
