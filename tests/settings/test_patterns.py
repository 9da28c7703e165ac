"""Lists of regular expressions: where a pattern ends, and what Java would read differently."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.settings.patterns import as_java_reads, split_patterns
from tests.settings.conftest import Faults, Load

LISTS = ("topics", "topics.exclude", "groups", "groups.exclude", "config.properties.exclude")

literals = st.sampled_from(
    ["a", "-", "0", ".", r"\.", r"\d", "x y", *(f"\\{sign}" for sign in "{}[]()\\,|")]
)
counts = st.tuples(st.integers(0, 9), st.sampled_from(["", ",", ",9"])).map(
    lambda count: f"@{{{count[0]}{count[1]}@}}"
)
beginnings = st.sampled_from(["", "^", "]", "^]"])
members = st.text(st.sampled_from("ab0,{}()"), max_size=4)
endings = st.sampled_from(["", r"\]"])
classes = st.tuples(beginnings, members, endings).map(
    lambda parts: f"@[{parts[0]}{parts[1]}z{parts[2]}@]"
)
atoms = st.one_of(literals, classes, st.tuples(literals, counts).map("".join))


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    kind = st.sampled_from(["", "?:", "?!", "?i:"])
    between = st.sampled_from(["", ",", "|", ", "])
    groups = st.tuples(kind, inner, between, inner).map(lambda parts: f"@({''.join(parts)}@)")
    return st.one_of(groups, st.tuples(inner, inner).map("".join))


patterns = st.recursive(atoms, _larger, max_leaves=8)
"""
Patterns with commas only where they belong to them, and no blank at either end.

An @ precedes each bracket that groups something; other brackets are literal characters.
"""

lists = st.lists(patterns, max_size=3)


@given(lists, st.sampled_from([",", ", ", " ,  "]))
def test_patterns_that_were_joined_come_back(marked: list[str], comma: str) -> None:
    """Only commas outside of braces, brackets and parentheses split a list."""
    wanted = [pattern.replace("@", "") for pattern in marked]
    found = split_patterns(comma.join(wanted))
    assert found == tuple(wanted)
    assert [as_java_reads(pattern).pattern for pattern in found] == wanted


@given(lists, patterns.filter(lambda one: "@" in one), lists, st.data())
def test_a_list_with_a_bracket_too_few_is_refused(
    before: list[str], whole: str, after: list[str], data: st.DataObject
) -> None:
    """A list with an unbalanced bracket is refused; it is never split at the wrong place."""
    lost = data.draw(st.sampled_from([at for at, sign in enumerate(whole) if sign == "@"]))
    broken = whole[:lost] + whole[lost + 2 :]
    with pytest.raises(ValueError, match="without its"):
        split_patterns(", ".join([*before, broken, *after]).replace("@", ""))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        (" , ,", ()),
        ("a, b,,c", ("a", "b", "c")),
        (".*-[0-9]{2,4}", (".*-[0-9]{2,4}",)),
        ("[^],]x, (a,b){1,}", ("[^],]x", "(a,b){1,}")),
        (r"a\,b, c\\,d", (r"a\,b", r"c\\", "d")),
        (r"\{, \[, \(, \}, \], \)", (r"\{", r"\[", r"\(", r"\}", r"\]", r"\)")),
        ("[{(], [)}]", ("[{(]", "[)}]")),
        (r"[\]], x", (r"[\]]", "x")),
    ],
)
def test_a_list_is_split_at_the_commas_between_patterns(text: str, found: tuple[str, ...]) -> None:
    """Splitting respects escapes and character classes of regular expressions."""
    assert split_patterns(text) == found


@pytest.mark.parametrize(
    ("text", "piece", "sign", "other"),
    [
        ("orders-{1", "orders-{1", "{", "}"),
        ("a, foo}, b", "foo}", "}", "{"),
        ("a, foo], b", "foo]", "]", "["),
        ("a, foo), b", "foo)", ")", "("),
        ("a, (b, c", "(b, c", "(", ")"),
        ("a, x[b, c", "x[b, c", "[", "]"),
        ("[]", "[]", "[", "]"),
        ("a, (b], c)", "(b]", "]", "["),
    ],
)
def test_a_piece_with_a_bracket_too_few_or_too_many_is_shown(
    text: str, piece: str, sign: str, other: str
) -> None:
    """The error shows the pattern, its unbalanced bracket, and how to escape it."""
    with pytest.raises(ValueError, match="without its") as caught:
        split_patterns(text)
    assert str(caught.value) == (
        f"'{piece}' has a '{sign}' without its '{other}'; write '\\\\{sign}' for the character"
    )


@pytest.mark.parametrize("key", LISTS)
def test_every_list_of_patterns_takes_a_comma_inside_a_pattern(load: Load, key: str) -> None:
    """In every list, a pattern with a comma stays one pattern."""
    (flow,) = load(f"{key} = x-[0-9]{{2,4}}, [a,b]y\n").flows
    found = {
        "topics": flow.topics,
        "topics.exclude": flow.topics_exclude,
        "groups": flow.groups.include,
        "groups.exclude": flow.groups.exclude,
        "config.properties.exclude": flow.config_exclude,
    }[key]
    assert [one.pattern for one in found] == ["x-[0-9]{2,4}", "[a,b]y"]


@pytest.mark.parametrize("key", [*LISTS, "replication.policy.topics.map"])
@pytest.mark.parametrize("sign", "{}[]()")
def test_every_list_of_patterns_refuses_an_unbalanced_piece(
    faults: Faults, key: str, sign: str
) -> None:
    """In every list, an unbalanced pattern is a fault with file and line."""
    (fault,) = faults(f"{key} = fine:x, foo{sign}:y\n")
    assert fault.startswith(f"f:5: {key} = fine:x, foo{sign}:y: 'foo{sign}:y' has a '{sign}' ")


def test_a_topic_may_be_renamed_by_a_pattern_with_commas(load: Load) -> None:
    """`replication.policy.topics.map` also accepts patterns with commas."""
    (flow,) = load("replication.policy.topics.map = raw-([0-9]{1,2}):lake.$1, [a,b](x|y):z\n").flows
    first, second = flow.renames
    assert (first("raw-12"), first("raw-123"), second("ax")) == ("lake.12", None, "z")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("orders-{eu,us}", "'{eu,us}' is not a count, such as {2,4}; write '\\\\{'"),
        ("a{2, 4}", "'{2, 4}' is not a count, such as {2,4}; write '\\\\{'"),
        ("a{,3}", "'{,3}' is not a count, such as {2,4}; write '\\\\{'"),
        ("x[a[b]]", "there is a '[' inside brackets; write '\\\\['"),
    ],
)
def test_brackets_that_java_reads_otherwise_are_refused(
    faults: Faults, text: str, why: str
) -> None:
    """Brackets that Java and Python read differently are refused."""
    assert faults(f"topics = {text}\n") == [
        f"f:5: topics = {text}: '{text}' is not a regular expression that Python reads as Java "
        f"does: {why} for the character"
    ]


def test_lists_that_are_no_patterns_are_split_at_every_comma(load: Load) -> None:
    """Lists of aliases and brokers are split at every comma, also inside brackets."""
    settings = load("A.bootstrap.servers = [::1]:1,[::2]:2\n")
    assert settings.clusters[0].bootstrap_servers == ("[::1]:1", "[::2]:2")
