"""Makes the clients of the library. No other module does, so every client logs in the same way."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from eos_mirror.kafka.aws_msk_iam import with_login


def new_consumer(config: Mapping[str, Any]) -> Consumer:
    """
    Make a consumer.

    Raises:
        KafkaException: The library refuses the configuration.
        LoginImpossible: There is no token for the login.
    """
    return Consumer(with_login(config))


def new_producer(config: Mapping[str, Any], **arguments: Any) -> Producer:
    """
    Make a producer.

    Args:
        arguments: Further arguments of the class, such as `logger`.

    Raises:
        KafkaException: The library refuses the configuration.
        LoginImpossible: There is no token for the login.
    """
    return Producer(with_login(config), **arguments)


def new_admin(config: Mapping[str, Any], **arguments: Any) -> AdminClient:
    """
    Make an admin client.

    Args:
        arguments: Further arguments of the class, such as `logger`.

    Raises:
        KafkaException: The library refuses the configuration.
        LoginImpossible: There is no token for the login.
    """
    return AdminClient(with_login(config), **arguments)
