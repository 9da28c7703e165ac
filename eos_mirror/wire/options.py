"""Reads the settings of the lane from complete client configurations, in librdkafka's names."""

from collections.abc import Mapping
from typing import Final

from eos_mirror.wire.fetcher import FetchSettings
from eos_mirror.wire.packing import Packing
from eos_mirror.wire.security import Security, Tokens
from eos_mirror.wire.security_options import security_of, unsupported_security
from eos_mirror.wire.sending import ProducerSettings

ANSWERED_WITHIN_MS: Final = "10000"
FETCHED_BYTES: Final = 16 << 20
PARTITION_BYTES: Final = 1 << 20
FETCHED_WITHIN_MS: Final = "30000"
TRANSACTION_TIMEOUT_MS: Final = "60000"

Config = Mapping[str, str]


def unsupported(config: Config) -> str | None:
    """Return what this configuration needs that the lane does not have; None if it has all."""
    return unsupported_security(config)


def security(config: Config, tokens: Tokens | None = None) -> Security:
    """
    Return how connections with this configuration are made.

    Args:
        tokens: Makes the tokens of AWS_MSK_IAM.

    Raises:
        LoginImpossible: A certificate or a key cannot be read, or `unsupported` is not None.
    """
    return security_of(config, tokens)


def fetch_settings(config: Config) -> FetchSettings:
    """Return how a consumer with this configuration reads."""
    return FetchSettings(
        max_bytes=int(config.get("fetch.max.bytes", FETCHED_BYTES)),
        partition_bytes=int(config.get("max.partition.fetch.bytes", PARTITION_BYTES)),
        min_bytes=int(config.get("fetch.min.bytes", "1")),
        wait_ms=int(config.get("fetch.wait.max.ms", "500")),
        rack=config.get("client.rack", ""),
        answered_within_s=int(config.get("socket.timeout.ms", FETCHED_WITHIN_MS)) / 1000,
    )


def producer_settings(config: Config) -> ProducerSettings:
    """Return how a producer with this configuration writes."""
    return ProducerSettings(
        answered_within_s=int(config.get("socket.timeout.ms", ANSWERED_WITHIN_MS)) / 1000,
        transaction_timeout_ms=int(config.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)),
        packing=Packing(
            compression=config.get("compression.type", config.get("compression.codec")),
            max_bytes=int(config.get("batch.size", "1000000")),
            max_records=int(config.get("batch.num.messages", "10000")),
            partitioner=config.get("partitioner", "consistent_random"),
        ),
    )
