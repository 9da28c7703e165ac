"""Kafka's replication policies and ours give the same answers about generated names."""

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from eos_mirror.core.policy import (
    is_heartbeats_topic,
    is_internal_topic,
    original_topic,
    replication_policy,
)
from eos_mirror.testing.installation import find_installation

ORACLE = Path(__file__).with_name("Policies.java")
NAMES, SEED = 3_000, 382
PARTS = (
    *("A", "B", "us-west", "orders", "heartbeats", "checkpoints", "internal", "mm2-offset-syncs"),
    *("mm2", "__consumer_offsets", "", "a.b", "x_y", "myheartbeats", "heartbeats2", "null"),
)
CLASSES = ("DefaultReplicationPolicy", "IdentityReplicationPolicy")


class Question(NamedTuple):
    """One name, and the policy that is asked about it."""

    kind: str
    separator: str
    internal: str
    alias: str
    topic: str

    def answer(self) -> str:
        """Return our answers, printed as Java prints them."""
        policy = replication_policy(
            self.kind,
            separator=self.separator,
            internal_separator_enabled=self.internal == "true",
            source_alias=self.alias,
        )
        internal = policy.internal_topics
        answers = (
            policy.format_remote_topic(self.alias, self.topic),
            policy.topic_source(self.topic),
            policy.upstream_topic(self.topic),
            original_topic(policy, self.topic),
            internal.offset_syncs(self.alias),
            internal.checkpoints(self.alias),
            is_heartbeats_topic(policy, self.topic),
            internal.is_checkpoints(self.topic),
            internal.is_internal(self.topic),
            is_internal_topic(policy, self.topic),
        )
        return "\t".join(map(in_java, answers))


def in_java(value: str | bool | None) -> str:
    """Return a value as `String.valueOf` prints it."""
    if value is None:
        return "null"
    return value if isinstance(value, str) else str(value).lower()


def questions() -> Iterator[Question]:
    """Generate seeded questions; names are parts with separators, so that every rule is hit."""
    chance = random.Random(SEED)
    for _ in range(NAMES):
        separator = chance.choice((".", "_", "-", "..", "__"))
        joints = (separator, separator, separator, ".")
        topic = chance.choice(PARTS)
        for _ in range(chance.randrange(4)):
            topic += chance.choice(joints) + chance.choice(PARTS)
        yield Question(
            kind=chance.choice(CLASSES),
            separator=separator,
            internal=chance.choice(("true", "false")),
            alias=chance.choice(("A", "B", "us-west", "eu.north")),
            topic=topic,
        )


@pytest.mark.brokers
def test_names_are_those_of_kafkas_own_policies(own_brokers: None) -> None:  # noqa: ARG001
    """Remote names, sources, upstream names and internal topics are those of Kafka."""
    asked = list(questions())
    command = find_installation().command(str(ORACLE), flags=["-XX:TieredStopAtLevel=1"])
    done = subprocess.run(
        command,
        input="".join("\t".join(question) + "\n" for question in asked),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if "\t" in line]
    assert len(said) == len(asked)
    for question, theirs in zip(asked, said, strict=True):
        assert question.answer() == theirs, question
