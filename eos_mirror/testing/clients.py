"""Client configurations for test clusters, and helpers to create topics and users."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import timedelta

from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from eos_mirror.testing.spec import Security, login
from eos_mirror.testing.waiting import wait_until

QUIET = 0
"""librdkafka's log level for clients that outlive brokers: a killed broker is expected."""
ADMIN_TIMEOUT = timedelta(seconds=30)
READY = timedelta(seconds=60)
"""How long a broker may take to start, on a busy machine."""
SCRAM_ITERATIONS = 4096


def librdkafka_config(
    bootstrap: str, security: Security, user: str, password: str
) -> dict[str, str]:
    """Return the configuration for librdkafka, without TLS keys."""
    if not security.is_sasl:
        return {"bootstrap.servers": bootstrap}
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": security.protocol,
        "sasl.mechanism": security.value,
        "sasl.username": user,
        "sasl.password": password,
    }


def java_properties(bootstrap: str, security: Security, user: str, password: str) -> dict[str, str]:
    """Return the configuration for Java clients, without TLS keys."""
    if not security.is_sasl:
        return {"bootstrap.servers": bootstrap}
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": security.protocol,
        "sasl.mechanism": security.value,
        "sasl.jaas.config": login(security, user, password),
    }


def create_topic_and_wait(
    admin: AdminClient, topic: NewTopic, *, known: Callable[[], bool]
) -> None:
    """
    Create a topic and wait until it can be used.

    Args:
        known: Returns whether every relevant broker knows the topic.

    Raises:
        KafkaException: The cluster refused, for instance because the topic exists.
    """
    timeout_s = ADMIN_TIMEOUT.total_seconds()
    created: dict[str, Future[None]] = admin.create_topics([topic], operation_timeout=timeout_s)
    created[topic.topic].result(timeout_s)
    wait_until(known, within=ADMIN_TIMEOUT, what=f"every broker knows {topic.topic}")


def create_scram_users(admin: AdminClient, users: Mapping[str, str]) -> None:
    """Create SCRAM-SHA-256 logins, or change their passwords."""
    how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, SCRAM_ITERATIONS)
    altered = admin.alter_user_scram_credentials(
        [
            UserScramCredentialUpsertion(user, how, password.encode())
            for user, password in users.items()
        ]
    )
    for future in altered.values():
        future.result(ADMIN_TIMEOUT.total_seconds())
