"""The table of protections matches the code and the tests."""

import ast
from itertools import groupby
from pathlib import Path

import pytest

from tests.protections.table import Protection, load_protections

ROOT = Path(__file__).parents[2]
PROTECTIONS = load_protections()
ROWS = {"C": range(9), "G": range(1, 9), "O": range(1, 6), "S": range(1, 10), "T": range(1, 7),
        "P": range(1, 8)}  # fmt: skip


def test_every_row_of_the_failure_matrix_has_a_protection() -> None:
    """Each row of the failure matrix has one for both data paths, or one for each of them."""
    wanted = [f"{letter}{number}" for letter, numbers in ROWS.items() for number in numbers]
    assert [row for row, _ in groupby(one.row for one in PROTECTIONS)] == wanted
    for row, group in groupby(PROTECTIONS, key=lambda one: one.row):
        paths = {one.data_path for one in group}
        assert paths in ({""}, {"client"}, {"client", "auto"}), row


def test_where_one_data_path_has_no_protection_of_its_own() -> None:
    """G7: our own lane sends no commit twice. P5: it has no queue that can be full."""
    paths = {
        row: {one.data_path for one in group}
        for row, group in groupby(PROTECTIONS, key=lambda one: one.row)
    }
    assert {row for row, found in paths.items() if found == {"client"}} == {"G7", "P5"}


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda one: one.name)
def test_a_protection_can_be_switched_off(protection: Protection) -> None:
    """The old text occurs once, the changed file is valid Python, and the test exists."""
    ast.parse(protection.applied_to((ROOT / protection.path).read_text()))
    path, _, name = protection.test.partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text()
