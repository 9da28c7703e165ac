"""Lists of patterns answer as `re.fullmatch` does, one by one, and cost no more than a look-up."""

import re

from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core import name_patterns
from eos_mirror.core.name_patterns import NamePatterns, Names, is_plain

NAMES = st.text("ab.-_", max_size=4)
PATTERNS = st.one_of(
    st.text("ab.-_", max_size=4),
    st.lists(st.sampled_from(["a", "b", ".", r"\.", r"\-", r"\_"]), max_size=4).map("".join),
    st.sampled_from([".*", "a+", "[ab]", "(a|b.)*", r"a\d?", ""]),
)


@given(st.lists(PATTERNS, max_size=6), NAMES)
def test_a_name_matches_if_one_of_the_patterns_does(patterns: list[str], name: str) -> None:
    """A dot stands for any character, an escaped one for itself."""
    expected = any(re.fullmatch(pattern, name) for pattern in patterns)

    assert NamePatterns(patterns).matches(name) is expected


@given(PATTERNS, st.lists(NAMES, max_size=6))
def test_a_pattern_is_found_if_it_matches_a_name(pattern: str, names: list[str]) -> None:
    """The other way round, for patterns that match nothing."""
    assert Names(names).has(pattern) is any(re.fullmatch(pattern, name) for name in names)


def test_names_are_looked_up_and_not_tried_one_by_one() -> None:
    """Five thousand names against five thousand topics took minutes of CPU."""
    names = [f"team-{n % 7}.orders.{n}" for n in range(5_000)]

    patterns = NamePatterns(names)

    assert all(map(is_plain, names))
    assert patterns._others == []  # noqa: SLF001 (the cost is not seen from outside)
    assert sum(map(len, patterns._names.values())) < 50  # noqa: SLF001 (look-ups for each length)
    assert name_patterns.is_plain(r"team\.orders")
    assert not name_patterns.is_plain("orders.*")
