"""Checks what a principal may do, without writing anything."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import islice
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
)
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType

from eos_mirror.errors import NotAuthorized, RetriableError, TargetUnavailable
from eos_mirror.kafka.client import new_producer
from eos_mirror.kafka.client_log import logger_for
from eos_mirror.kafka.deadline import ANSWER, GRACE_S
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.groups import TO_A_COORDINATOR_S, coordinator_waits_s
from eos_mirror.kafka.topics import Topics

NO_TIMEOUT_MS = 2**31 - 1_000
"""24 days. No cluster allows a transaction this long, so every cluster refuses to initialise it."""

TRIES_S = tuple(0.03 * 1.5**n for n in range(18))
GROUP_TRIES = 4
NO_SUCH_TOPIC = "eos-mirror.access-probe"
MIRROR_FROM = (AclOperation.READ,)
MIRROR_TO = (AclOperation.READ, AclOperation.WRITE)
"""READ is needed because a shadow offset is an offset commit on the remote topic."""
COPY_TO = (AclOperation.WRITE,)
"""For at-least-once mode."""


def missing_topic_rights(topics: Topics, wanted: Mapping[str, Sequence[AclOperation]]) -> list[str]:
    """
    Return the rights that are missing on existing topics, as `WRITE on topic orders`.

    Args:
        wanted: Operations by topic. A topic that is missing, or that may not be described, counts
            as lacking all of them.

    Raises:
        RestartTask: The cluster did not answer (SourceUnavailable or TargetUnavailable).
    """
    return [right for rights in rights_missing(topics, wanted).values() for right in rights]


def rights_missing(
    topics: Topics, wanted: Mapping[str, Sequence[AclOperation]]
) -> dict[str, list[str]]:
    """Return missing rights by topic, only for topics that lack any; see `missing_topic_rights`."""
    if not wanted:
        return {}
    allowed = topics.allowed(list(wanted))
    found = {
        name: [f"{one.name} on topic {name}" for one in operations if one not in allowed[name]]
        for name, operations in wanted.items()
    }
    return {name: rights for name, rights in found.items() if rights}


def may_commit_in_group(admin: AdminClient, group: str) -> bool:
    """
    Return True if READ on the group is allowed.

    The check commits an offset for a topic that does not exist. Brokers check the group first and
    refuse the topic afterwards, so nothing is written either way.
    """
    for wait_s in islice(coordinator_waits_s(), GROUP_TRIES):
        codes = _answers_to_a_commit(admin, group, wait_s=wait_s)
        if codes is not None:
            return KafkaError.GROUP_AUTHORIZATION_FAILED not in codes
    return True


def _answers_to_a_commit(admin: AdminClient, group: str, *, wait_s: float) -> set[int] | None:
    """Return the error codes; None if there was no answer in time."""
    probe = ConsumerGroupTopicPartitions(group, [ClientPartition(NO_SUCH_TOPIC, 0, 0)])
    answer = admin.alter_consumer_group_offsets([probe], request_timeout=TO_A_COORDINATOR_S)
    try:
        result = answer[group].result(wait_s)
    except TimeoutError:
        return None
    except KafkaException as exc:
        return {exc.args[0].code()}
    return {p.error.code() for p in result.topic_partitions or [] if p.error is not None}


def may_write_transactional_id(producer_config: Mapping[str, Any], transactional_id: str) -> bool:
    """
    Return True if WRITE on the id is allowed.

    The check initialises the id with a timeout that no cluster allows. Brokers check the right
    first and refuse the timeout afterwards, so nothing is stored either way.

    Each try has its own client and waits 1.5 times as long as the one before. If this is the first
    transaction ever on a cluster, the cluster creates __transaction_state now. A client that has
    to wait for it asks again only after 500 ms, twice.
    """
    *tries, last = TRIES_S
    try:
        for patience_s in tries:
            with suppress(TargetUnavailable, RetriableError):
                _initialise(refused_producer(producer_config, transactional_id), patience_s)
                return True
        _initialise(refused_producer(producer_config, transactional_id), last)
    except NotAuthorized:
        return False
    return True


def refused_producer(producer_config: Mapping[str, Any], transactional_id: str) -> Producer:
    """Create a producer that every cluster refuses to initialise, and that logs nothing."""
    config = {
        **producer_config,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": NO_TIMEOUT_MS,
    }
    return new_producer(config, logger=logger_for(logging.NullHandler()))


def _initialise(producer: Producer, patience_s: float) -> None:
    """Initialise the id; return when the cluster refused its timeout."""
    with translated("probe the transactional id"):
        producer.list_topics(timeout=ANSWER.total_seconds())
        try:
            producer.init_transactions(patience_s)
        except KafkaException as exc:
            if exc.args[0].code() != KafkaError.INVALID_TRANSACTION_TIMEOUT:
                raise


def longest_transaction(admin: AdminClient) -> timedelta | None:
    """Return how long the cluster lets a transaction stay open; None if it does not say."""
    most = broker_numbers(admin, "transaction.max.timeout.ms")
    return timedelta(milliseconds=most[0]) if most else None


def session_range(admin: AdminClient) -> tuple[timedelta, timedelta] | None:
    """Return the shortest and the longest session of a group; None if the cluster does not say."""
    found = broker_numbers(admin, "group.min.session.timeout.ms", "group.max.session.timeout.ms")
    return (timedelta(milliseconds=found[0]), timedelta(milliseconds=found[1])) if found else None


def largest_message(admin: AdminClient) -> int | None:
    """Return the default `max.message.bytes` of new topics; None if the cluster does not say."""
    found = broker_numbers(admin, "message.max.bytes")
    return found[0] if found else None


def broker_numbers(admin: AdminClient, *names: str) -> list[int]:
    """Return numeric configs of a broker; nothing if the right to describe them is missing."""
    with translated("describe the configuration of a broker"):
        broker = admin.list_topics(timeout=ANSWER.total_seconds()).orig_broker_id
    asked = ConfigResource(ResourceType.BROKER, str(broker))
    answer = admin.describe_configs([asked], request_timeout=ANSWER.total_seconds())
    with suppress(KafkaException, TimeoutError, KeyError):
        found = answer[asked].result(ANSWER.total_seconds() + GRACE_S)
        return [int(found[name].value) for name in names]
    return []
