"""Replication policies: names are formatted and parsed as in Kafka's own classes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.policy import (
    InternalTopics,
    Rename,
    RenamingPolicy,
    ReplicationPolicy,
    is_heartbeats_topic,
    is_internal_topic,
    original_topic,
    replication_policy,
)
from eos_mirror.errors import ConfigError

DEFAULT = replication_policy("DefaultReplicationPolicy")
UNDERSCORES = replication_policy("DefaultReplicationPolicy", separator="__")
IDENTITY = replication_policy("IdentityReplicationPolicy", source_alias="A")


@pytest.mark.parametrize(
    ("policy", "topic", "remote"),
    [
        (DEFAULT, "orders", "A.orders"),
        (DEFAULT, "B.orders", "A.B.orders"),
        (UNDERSCORES, "orders", "A__orders"),
        (IDENTITY, "orders", "orders"),
        (IDENTITY, "B.orders", "B.orders"),
        (IDENTITY, "heartbeats", "A.heartbeats"),
        (IDENTITY, "my-heartbeats", "A.my-heartbeats"),
        (IDENTITY, "heartbeats-of-mine", "heartbeats-of-mine"),
    ],
)
def test_remote_topics_are_named(policy: ReplicationPolicy, topic: str, remote: str) -> None:
    """The alias comes first; the identity policy renames only heartbeats."""
    assert policy.format_remote_topic("A", topic) == remote


@pytest.mark.parametrize(
    ("policy", "topic", "source", "upstream"),
    [
        (DEFAULT, "orders", None, None),
        (DEFAULT, "A.orders", "A", "orders"),
        (DEFAULT, "B.A.orders", "B", "A.orders"),
        (DEFAULT, "a.", None, None),
        (DEFAULT, "a..", None, None),
        (DEFAULT, ".", None, None),
        (DEFAULT, "", None, None),
        (DEFAULT, ".b", "", "b"),
        (DEFAULT, "..b", "", ".b"),
        (DEFAULT, "a..b", "a", ".b"),
        (DEFAULT, "a.b.", "a", "b."),
        (DEFAULT, "us.west.orders", "us", "west.orders"),
        (UNDERSCORES, "A__orders", "A", "orders"),
        (UNDERSCORES, "A.orders", None, None),
        (UNDERSCORES, "a___", "a", "_"),
        (UNDERSCORES, "a__", None, None),
        (IDENTITY, "orders", "A", "orders"),
        (IDENTITY, "B.orders", "A", "B.orders"),
        (IDENTITY, "heartbeats", None, None),
        (IDENTITY, "B.heartbeats", "B", "heartbeats"),
        (replication_policy("IdentityReplicationPolicy"), "orders", None, "orders"),
    ],
)
def test_names_say_where_topics_came_from(
    policy: ReplicationPolicy, topic: str, source: str | None, upstream: str | None
) -> None:
    """Names are split as in Java: empty parts at the end do not count."""
    assert policy.topic_source(topic) == source
    assert policy.upstream_topic(topic) == upstream


@pytest.mark.parametrize(
    ("policy", "topic", "original"),
    [
        (DEFAULT, "orders", "orders"),
        (DEFAULT, "C.B.A.orders", "orders"),
        (DEFAULT, "A.orders.", "orders."),
        (IDENTITY, "B.orders", "B.orders"),
        (IDENTITY, "B.C.heartbeats", "heartbeats"),
    ],
)
def test_the_original_topic_is_behind_all_hops(
    policy: ReplicationPolicy, topic: str, original: str
) -> None:
    """The original topic is the name without any alias."""
    assert original_topic(policy, topic) == original


@pytest.mark.parametrize(
    ("policy", "topic", "expected"),
    [
        (DEFAULT, "heartbeats", True),
        (DEFAULT, "B.A.heartbeats", True),
        (DEFAULT, "my-heartbeats", False),
        (IDENTITY, "heartbeats", True),
        (IDENTITY, "B.heartbeats", True),
        (IDENTITY, "my-heartbeats", False),
    ],
)
def test_heartbeats_are_recognised(policy: ReplicationPolicy, topic: str, expected: bool) -> None:
    """Only `heartbeats` and its copies are heartbeats topics."""
    assert is_heartbeats_topic(policy, topic) is expected


@pytest.mark.parametrize(
    ("policy", "topic", "expected"),
    [
        (DEFAULT, "__consumer_offsets", True),
        (DEFAULT, ".hidden", True),
        (DEFAULT, "mm2-offsets.A.internal", True),
        (DEFAULT, "mm2-offset-syncs.B.internal", True),
        (DEFAULT, "A.checkpoints.internal", True),
        (DEFAULT, "mm2-offsets-A-internal", False),
        (DEFAULT, "checkpoints.internal", False),
        (DEFAULT, "orders.internal", False),
        (DEFAULT, "orders-internal", False),
        (DEFAULT, "_orders", False),
        (UNDERSCORES, "A__checkpoints__internal", True),
        (UNDERSCORES, "A.checkpoints.internal", False),
        (UNDERSCORES, "mm2-offsets.A.internal", False),
        (IDENTITY, "A.checkpoints.internal", True),
    ],
)
def test_internal_topics_are_recognised(
    policy: ReplicationPolicy,
    topic: str,
    expected: bool,
) -> None:
    """The internal topics of Kafka and MirrorMaker are recognised by the rule of Kafka 4.0."""
    assert is_internal_topic(policy, topic) is expected


def test_internal_topics_are_named() -> None:
    """Names follow the separator unless the internal separator is switched off."""
    dots = replication_policy(
        "DefaultReplicationPolicy", separator="__", internal_separator_enabled=False
    )

    assert UNDERSCORES.internal_topics.checkpoints("A") == "A__checkpoints__internal"
    assert UNDERSCORES.internal_topics.offset_syncs("A") == "mm2-offset-syncs__A__internal"
    assert dots.format_remote_topic("A", "orders") == "A__orders"
    assert dots.internal_topics == InternalTopics()
    assert dots.internal_topics.checkpoints("A") == "A.checkpoints.internal"
    assert dots.internal_topics.offset_syncs("A") == "mm2-offset-syncs.A.internal"


@pytest.mark.parametrize("package", ["", "org.apache.kafka.connect.mirror."])
def test_policies_are_found_by_class_name(package: str) -> None:
    """Policies are found by their Java class name, as in a configuration of MirrorMaker 2."""
    assert replication_policy(f"{package}DefaultReplicationPolicy") == DEFAULT
    assert replication_policy(f"{package}IdentityReplicationPolicy", source_alias="A") == IDENTITY


def test_an_unknown_policy_is_a_configuration_error() -> None:
    """An unknown policy is an error that lists the known ones."""
    with pytest.raises(ConfigError, match=r"com\.acme\.Policy is unknown: use DefaultReplication"):
        replication_policy("com.acme.Policy")


def test_an_empty_separator_is_a_configuration_error() -> None:
    """An empty separator is an error, because remote names could not be parsed."""
    with pytest.raises(ConfigError, match="separator must not be empty"):
        replication_policy("DefaultReplicationPolicy", separator="")


@given(
    st.text("AB-", min_size=1),
    st.text("ab.-_", min_size=1).filter(lambda topic: topic.strip(".")),
)
def test_a_remote_name_is_read_back(alias: str, topic: str) -> None:
    """Alias and topic are parsed from a remote name if the alias contains no separator."""
    remote = DEFAULT.format_remote_topic(alias, topic)

    assert (DEFAULT.topic_source(remote), DEFAULT.upstream_topic(remote)) == (alias, topic)


@given(st.text("ab.", max_size=6), st.sampled_from([".", "..", "ab"]))
def test_the_source_is_the_first_part_of_java_split(topic: str, separator: str) -> None:
    """
    The source is the first part of the name, split as Java's `String.split` does.

    Empty parts at the end do not count, and at least two parts are needed.
    """
    parts = topic.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    policy = replication_policy("DefaultReplicationPolicy", separator=separator)

    assert policy.topic_source(topic) == (parts[0] if len(parts) >= 2 else None)


RENAMING = RenamingPolicy(
    renames=[
        Rename(re.compile("orders"), "sales"),
        Rename(re.compile("raw-(.*)-(v\\d)"), "lake.$2.$1"),
        Rename(re.compile(".*heartbeats"), "lost"),
    ],
    others=DEFAULT,
)


@pytest.mark.parametrize(
    ("topic", "remote"),
    [
        ("orders", "sales"),
        ("orders-2", "A.orders-2"),
        ("raw-clicks-v2", "lake.v2.clicks"),
        ("raw-clicks", "A.raw-clicks"),
        ("heartbeats", "A.heartbeats"),
        ("my-heartbeats", "lost"),
    ],
)
def test_topics_of_the_map_have_names_of_their_own(topic: str, remote: str) -> None:
    """Topics of the map are renamed; all others, and heartbeats, are named as without it."""
    assert RENAMING.format_remote_topic("A", topic) == remote


def test_a_name_of_the_map_does_not_say_where_it_came_from() -> None:
    """A renamed topic does not show its source; all others do."""
    assert RENAMING.topic_source("sales") is None
    assert RENAMING.topic_source("A.orders-2") == "A"
    assert RENAMING.upstream_topic("A.orders-2") == "orders-2"
    assert RENAMING.internal_topics == DEFAULT.internal_topics
