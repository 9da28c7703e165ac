"""Which configuration a copy gets: the cases of Kafka, and what exactly once adds."""

import pytest

from eos_mirror.core.filters import TopicFilter
from eos_mirror.core.topic_configs import (
    LIMIT,
    POLICY,
    Changes,
    ConfigFilter,
    Entry,
    Origin,
    config_changes,
    initial_config,
    urgent_changes,
)

NAMES = TopicFilter([".*"], [r"min\.insync\.replicas", r"unclean\..*"])
OF_TARGET = ConfigFilter(names=NAMES, keeps_defaults=False)
OF_SOURCE = ConfigFilter(names=NAMES, keeps_defaults=True)
OWN_LIMITS = ConfigFilter(
    names=TopicFilter([".*"], [r"max\.message\.bytes", r"cleanup\.policy"]), keeps_defaults=False
)


def topic(value: str) -> Entry:
    """Return an entry that is set on the topic."""
    return Entry(value=value, origin=Origin.TOPIC)


def default(value: str) -> Entry:
    """Return an entry with its default value."""
    return Entry(value=value, origin=Origin.DEFAULT)


SOURCE = {
    "retention.ms": topic("1000"),
    "segment.ms": default("604800000"),
    "min.insync.replicas": topic("2"),
    "unclean.leader.election.enable": topic("true"),
    "flush.ms": Entry(value="7", origin=Origin.BROKERS),
    "preallocate": Entry(value="true", origin=Origin.FILE),
    "max.message.bytes": default("1048588"),
    "cleanup.policy": Entry(value="delete", origin=Origin.FILE),
    "message.timestamp.type": topic("LogAppendTime"),
}


def test_a_new_copy_gets_what_was_set_and_what_its_records_need() -> None:
    """
    A new copy gets the entries that are set on the source and those that its records need.

    It does not get excluded entries, nor other entries from the static configuration of a broker.
    """
    assert initial_config(SOURCE, OF_TARGET) == {
        "retention.ms": "1000",
        "flush.ms": "7",
        "max.message.bytes": "1048588",
        "cleanup.policy": "delete",
    }


def test_defaults_of_the_source_are_copied_if_the_file_says_so() -> None:
    """With `use.defaults.from = source` (KIP-894), defaults of the source are copied."""
    copied = initial_config(SOURCE, OF_SOURCE)
    assert copied == {**initial_config(SOURCE, OF_TARGET), "segment.ms": "604800000"}


def test_a_copy_that_is_as_it_should_be_is_not_touched() -> None:
    """A copy is not changed if the effective values are right, wherever they are set."""
    there = {name: default(value) for name, value in initial_config(SOURCE, OF_TARGET).items()}
    assert not config_changes(SOURCE, there, OF_TARGET)


@pytest.mark.parametrize(
    ("rules", "there", "changes"),
    [
        (OF_TARGET, {"retention.ms": topic("5")}, Changes(set={"retention.ms": "1000"})),
        (OF_TARGET, {"segment.ms": topic("5")}, Changes(delete=("segment.ms",))),
        (OF_TARGET, {"segment.ms": default("5")}, Changes()),
        (OF_SOURCE, {"segment.ms": default("5")}, Changes(set={"segment.ms": "604800000"})),
        (OF_TARGET, {"min.insync.replicas": topic("1")}, Changes()),
        (OF_TARGET, {"preallocate": topic("false")}, Changes()),
        (OF_TARGET, {"unknown.here": topic("1")}, Changes()),
        (OF_TARGET, {"message.timestamp.type": topic("CreateTime")}, Changes()),
        (OF_TARGET, {LIMIT: topic("9")}, Changes(set={LIMIT: "1048588"})),
        (OF_TARGET, {LIMIT: topic("9000000")}, Changes()),
        (
            OF_TARGET,
            {"max.message.bytes": topic("9")},
            Changes(set={"max.message.bytes": "1048588"}),
        ),
    ],
)
def test_a_copy_is_changed_where_it_differs(
    rules: ConfigFilter, there: dict[str, Entry], changes: Changes
) -> None:
    """Only the entries that differ are changed."""
    right = {name: topic(value) for name, value in initial_config(SOURCE, rules).items()}
    assert config_changes(SOURCE, {**right, **there}, rules) == changes


def test_what_is_excluded_is_never_set() -> None:
    """An excluded entry is never set, neither at creation nor later."""
    assert not {LIMIT, POLICY} & initial_config(SOURCE, OWN_LIMITS).keys()
    right = {name: topic(value) for name, value in initial_config(SOURCE, OWN_LIMITS).items()}
    other = {LIMIT: topic("9"), POLICY: topic("compact")}
    assert not config_changes(SOURCE, {**right, **other}, OWN_LIMITS)


@pytest.mark.parametrize(
    ("there", "policy", "urgent"),
    [
        ({LIMIT: topic("9")}, "delete", {LIMIT: "1048588"}),
        ({LIMIT: topic("9000000")}, "delete", {}),
        ({"retention.ms": topic("5")}, "delete", {}),
        ({POLICY: topic("compact")}, "delete", {POLICY: "delete"}),
        ({POLICY: topic("compact,delete")}, "delete", {POLICY: "delete"}),
        ({POLICY: topic("compact,delete")}, "compact", {}),
        ({POLICY: topic("delete")}, "compact", {}),
        ({POLICY: default("compact")}, "delete", {POLICY: "delete"}),
    ],
)
def test_what_lets_records_in_is_urgent(
    there: dict[str, Entry], policy: str, urgent: dict[str, str]
) -> None:
    """Only a larger message limit and the end of compaction are urgent."""
    source = {**SOURCE, POLICY: topic(policy)}
    right = {name: topic(value) for name, value in initial_config(source, OF_TARGET).items()}
    target = {**right, **there}
    changes = config_changes(source, target, OF_TARGET)
    assert urgent_changes(changes, target) == Changes(set=urgent)
