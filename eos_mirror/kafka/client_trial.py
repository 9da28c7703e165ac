"""Makes clients that connect to nothing, to learn whether the library accepts their settings."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from eos_mirror.errors import LoginImpossible
from eos_mirror.kafka.aws_msk_iam import without_login

ALONE: Final[Mapping[str, str]] = {"bootstrap.servers": "", "log_level": "0"}

TOKENS: Final = "sasl.oauthbearer."
"""Without these, a client does not ask for a token as soon as it exists."""


def refusal_of_consumer(config: Mapping[str, Any]) -> str:
    """Return why no consumer has this configuration; empty if one can."""
    return _refusal(Consumer, config)


def refusal_of_producer(config: Mapping[str, Any]) -> str:
    """Return why no producer has this configuration; empty if one can."""
    return _refusal(Producer, config)


def refusal_of_admin(config: Mapping[str, Any]) -> str:
    """Return why no admin client has this configuration; empty if one can."""
    return _refusal(AdminClient, config)


def _refusal(make: Callable[[dict[str, Any]], object], config: Mapping[str, Any]) -> str:
    try:
        own = {k: one for k, one in without_login(config).items() if not k.startswith(TOKENS)}
        make({**own, **ALONE})
    except LoginImpossible as exc:
        return str(exc)
    except KafkaException as exc:
        return str(exc.args[0].str())
    except (TypeError, ValueError) as exc:  # of the binding
        return str(exc)
    return ""
