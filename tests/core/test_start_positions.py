"""The first pattern that matches a topic says where it begins."""

import pytest

from eos_mirror.core.start_positions import StartRule, encode_rules, rule_of, start_of_topic


@pytest.mark.parametrize(
    ("text", "pattern", "position"),
    [
        ("earliest", None, "earliest"),
        ("logs[.].*=latest", "logs[.].*", "latest"),
        ("a{1,2}=last:100", "a{1,2}", "last:100"),
        ("orders=group:a=b", "orders", "group:a=b"),
        ("x=timestamp:2025-01-31T10:00:00+00:00", "x", "timestamp:2025-01-31T10:00:00+00:00"),
        ("(?=o).*=offset:0", "(?=o).*", "offset:0"),
    ],
)
def test_a_rule_is_read_and_written(text: str, pattern: str | None, position: str) -> None:
    """A group id may have an equals sign, and so may a pattern."""
    rule = StartRule(pattern, position)
    assert rule_of(text) == rule
    assert encode_rules([rule]) == text


@pytest.mark.parametrize("text", ["", "soon", "orders=", "orders=soon", "=earliest", "offset:"])
def test_other_texts_are_no_rule(text: str) -> None:
    """The configuration refuses them."""
    assert rule_of(text) is None


def test_the_first_rule_that_matches_counts() -> None:
    """A pattern matches the whole name."""
    rules = encode_rules(
        [
            StartRule("logs[.].*", "latest"),
            StartRule("logs.*", "last:5"),
            StartRule(None, "offset:7"),
        ]
    )
    assert start_of_topic(rules, "logs.a") == "latest"
    assert start_of_topic(rules, "logs-a") == "last:5"
    assert start_of_topic(rules, "my-logs") == "offset:7"
    assert start_of_topic("logs=latest", "orders") == "earliest"
    assert start_of_topic("latest", "orders") == "latest"
