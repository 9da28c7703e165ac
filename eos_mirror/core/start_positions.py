"""
Where the mirroring of a new partition begins: the values of `start.position`, by topic.

A position is `earliest`, `latest`, `timestamp:ISO`, `offset:N`, `last:N` or `group:ID`.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

FROM_THE_START = "earliest"
"""Everything of a new partition will be mirrored."""


class StartRule(NamedTuple):
    """
    Where the topics of one pattern begin.

    Attributes:
        pattern: Matches whole topic names; None matches every topic.
        position: As the module says.
    """

    pattern: str | None
    position: str


def encode_rules(rules: Sequence[StartRule]) -> str:
    """Return one rule a line: topic patterns have every other character."""
    return "\n".join(
        one.position if one.pattern is None else f"{one.pattern}={one.position}" for one in rules
    )


_RULE = re.compile(
    r"(?:(?P<pattern>.+?)=)?(?P<position>earliest|latest|(?:timestamp|offset|last|group):.+)"
)


def rule_of(text: str) -> StartRule | None:
    """Return the rule that a text is: `position`, or `pattern=position`; None if it is neither."""
    found = _RULE.fullmatch(text)
    return StartRule(found["pattern"], found["position"]) if found is not None else None


def start_of_topic(rules: str, topic: str) -> str:
    """
    Return the position of a topic. The first rule that matches counts.

    Args:
        rules: As `encode_rules` returns them.
    """
    for line in rules.split("\n"):
        rule = rule_of(line)
        if rule is not None and (
            rule.pattern is None or re.fullmatch(rule.pattern, topic, re.ASCII) is not None
        ):
            return rule.position
    return FROM_THE_START
