"""The selection of tests, the table and locks, without brokers."""

import hashlib
from pathlib import Path

import pytest

from eos_mirror.errors import ConfigError
from eos_mirror.testing.releases import RELEASES, chosen_release, source_release
from tests.versions.lock import lock_of
from tests.versions.report import Row, row_of, table_of
from tests.versions.selection import MIRROR, PAIRS, Pair

ROOT = Path(__file__).parents[2]
XML = """
<testsuites><testsuite>
  <testcase name="a"><properties><property name="protocol" value="TV1"/></properties></testcase>
  <testcase name="b"><failure message="no"/></testcase>
  <testcase name="c"><error message="no"/></testcase>
  <testcase name="d"><skipped message="why"/></testcase>
</testsuite></testsuites>
"""


def test_every_selected_test_exists() -> None:
    """A name that nothing has would end a run before its first test."""
    for test in {test for pair in PAIRS for test in pair.tests}:
        path, _, name = test.partition("[")[0].partition("::")
        assert f"def {name}" in (ROOT / path).read_text()


def test_every_release_is_both_source_and_target() -> None:
    """After them, the oldest and the newest release mirror each other."""
    names = [str(pair) for pair in PAIRS]

    assert names[:-2] == [release.name for release in RELEASES]
    assert names[-2:] == ["3.7.2 → 4.4.0", "4.4.0 → 3.7.2"]


@pytest.mark.parametrize(("text", "other"), [("3.7", "TV2"), ("4.4:3.7", "TV2"), ("4.3", "TV1")])
def test_only_the_protocol_of_the_target_is_tested(text: str, other: str) -> None:
    """The other one has a row of its own."""
    excluded = Pair.parse(text).arguments[-1]

    assert f" {other})" in excluded
    assert excluded.startswith("not (client or ")


def test_a_mixed_pair_runs_the_tests_from_end_to_end() -> None:
    """Its releases are the ones that the fixtures of the tests start."""
    pair = Pair.parse("3.7:4.4")

    assert pair.tests[1:] == MIRROR
    assert source_release(pair.environ) == pair.source != pair.target
    assert chosen_release(pair.environ) == pair.target


def test_an_unknown_release_is_refused() -> None:
    """On each side of the pair."""
    with pytest.raises(ConfigError, match=r"no brokers of Kafka 3\.6"):
        Pair.parse("4.4:3.6")


def test_a_lock_has_the_name_the_size_and_the_sha256_of_each_jar(tmp_path: Path) -> None:
    """A line for each, in the order of their names."""
    for name in ("b.jar", "a.jar"):
        (tmp_path / name).write_bytes(name.encode())

    assert [line.split() for line in lock_of(tmp_path).splitlines()] == [
        [name, "5", hashlib.sha256(name.encode()).hexdigest()] for name in ("a.jar", "b.jar")
    ]


def test_errors_count_as_failures_and_skips_apart() -> None:
    """What is not one of them has passed."""
    assert row_of("3.7.2", XML, seconds=12.4) == Row(
        name="3.7.2", protocol="TV1", passed=1, failed=["b", "c"], skipped=1, seconds=12.4
    )


def test_the_table_has_a_row_for_each_run_and_names_what_failed() -> None:
    """Without a failure there is nothing below it."""
    good = Row(name="3.7.2", protocol="TV1", passed=9, skipped=1, seconds=70.6)
    bad = Row(name="4.4.0", failed=["a", "b"], seconds=3)
    table = [
        "| Kafka | protocol | passed | failed | skipped | seconds |",
        "|---|---|---|---|---|---|",
        "| 3.7.2 | TV1 | 9 | 0 | 1 | 71 |",
    ]

    assert table_of([good]).splitlines() == table
    assert table_of([good, bad]).splitlines() == [
        *table,
        "| 4.4.0 | unknown | 0 | 2 | 0 | 3 |",
        "",
        "- 4.4.0: `a` failed",
        "- 4.4.0: `b` failed",
    ]
