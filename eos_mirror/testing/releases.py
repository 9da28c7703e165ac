"""The releases of Kafka that the brokers of tests can be, and everything that differs in them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from eos_mirror.errors import ConfigError

VARIABLE: Final = "EOS_MIRROR_TEST_KAFKA"
SOURCE_VARIABLE: Final = "EOS_MIRROR_TEST_KAFKA_SOURCE"
"""Chooses another release for the source cluster that tests share."""

TRANSACTION_VERSION: Final = "transaction.version"

LOG4J2_BINDING: Final = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"
"""Without it a broker from 4.0 on logs nothing; older ones depend on a binding to Log4j 1."""

IN_CORE_UNTIL_4: Final = {
    "AclCommand": "kafka.admin.AclCommand",
    "ConfigCommand": "kafka.admin.ConfigCommand",
    "ConsoleProducer": "kafka.tools.ConsoleProducer",
    "DumpLogSegments": "kafka.tools.DumpLogSegments",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """
    A release of Apache Kafka, and how its clusters are formatted.

    Attributes:
        variant: Ends its name, if clusters have other features than those of the release.
        features: Their feature levels, unless a cluster asks for others.
        protocols: Transaction protocols of its clusters, the default last: 1, or KIP-890's, 2.
        has_mirror_maker: MirrorMaker 2 is among the jars.
        log4j2: It logs with Log4j 2; otherwise with Log4j 1.
        main_classes: Main classes of its tools, where they differ from those of Kafka 4.4.
        checkpoint: Where its formatter puts the bootstrap checkpoint, in the log folder.
    """

    version: str
    variant: str = ""
    features: Mapping[str, int] = field(default_factory=dict, hash=False)
    protocols: Sequence[int] = (1, 2)
    has_mirror_maker: bool = True
    log4j2: bool = True
    main_classes: Mapping[str, str] = field(default_factory=dict, hash=False)
    checkpoint: str = "bootstrap.checkpoint"

    def __str__(self) -> str:
        return f"Kafka {self.name}"

    @property
    def name(self) -> str:
        """Return the version, and the variant."""
        return f"{self.version}{self.variant}"

    @property
    def protocol(self) -> int:
        """Return the transaction protocol that its clusters speak, unless they ask for another."""
        return self.features.get(TRANSACTION_VERSION, self.protocols[-1])

    def features_for(self, protocol: int) -> Mapping[str, int]:
        """Return the features of a cluster that speaks one of the transaction protocols."""
        return {TRANSACTION_VERSION: protocol} if len(self.protocols) > 1 else {}

    @property
    def roots(self) -> Sequence[str]:
        """Return the artifacts whose closure is the set of jars."""
        names = ["kafka_2.13", "kafka-tools", *(["connect-mirror"] * self.has_mirror_maker)]
        roots = [f"org.apache.kafka:{name}:{self.version}" for name in names]
        return [*roots, LOG4J2_BINDING] if self.log4j2 else roots


DEFAULT: Final = Release(
    version="4.3.1", main_classes={"ConfigCommand": IN_CORE_UNTIL_4["ConfigCommand"]}
)

RELEASES: Final = (
    Release(
        version="3.7.2",
        protocols=(1,),
        log4j2=False,
        main_classes={
            **IN_CORE_UNTIL_4,
            "ConsoleConsumer": "kafka.tools.ConsoleConsumer",
            "ConsumerGroupCommand": "kafka.admin.ConsumerGroupCommand",
        },
    ),
    Release(
        version="3.9.2",
        protocols=(1,),
        log4j2=False,
        main_classes=IN_CORE_UNTIL_4,
    ),
    Release(
        version="4.0.2",
        main_classes={name: IN_CORE_UNTIL_4[name] for name in ("ConfigCommand", "DumpLogSegments")},
    ),
    DEFAULT,
    replace(DEFAULT, variant="-tv1", features={TRANSACTION_VERSION: 1}),
    Release(
        version="4.4.0",
        has_mirror_maker=False,  # Maven Central has no connect-mirror 4.4.0
        checkpoint="__cluster_metadata-0/00000000000000000000-0000000000.checkpoint",
    ),
)


def find_release(name: str) -> Release:
    """
    Return a release by its name, such as `3.9.2`, or without its third number, such as `4.3-tv1`.

    Raises:
        ConfigError: There is no such release; the message lists all.
    """
    for release in RELEASES:
        shorter = release.version.rpartition(".")[0] + release.variant
        if name in {release.name, shorter}:
            return release
    raise ConfigError(f"no brokers of Kafka {name}: use {', '.join(one.name for one in RELEASES)}")


def chosen_release(environ: Mapping[str, str] = os.environ) -> Release:
    """
    Return the release that EOS_MIRROR_TEST_KAFKA names; the default if it is not set.

    Raises:
        ConfigError: There is no such release.
    """
    name = environ.get(VARIABLE)
    return find_release(name) if name else DEFAULT


def source_release(environ: Mapping[str, str] = os.environ) -> Release:
    """
    Return the release that EOS_MIRROR_TEST_KAFKA_SOURCE names; `chosen_release` if it is not set.

    Raises:
        ConfigError: There is no such release.
    """
    name = environ.get(SOURCE_VARIABLE)
    return find_release(name) if name else chosen_release(environ)
