"""The page of client settings has the answers that the code gives."""

import re
from collections.abc import Mapping

import pytest

from tests.settings.client_page import ALREADY, BEGIN, CHANGED, END, PAGE, PASSED, answers, block
from tests.settings.java_pairs import Pair

Answers = Mapping[Pair, tuple[str, ...]]

IN_FEW_WORDS = re.compile(
    rf"{PASSED}( as .+)?|{CHANGED} to .+|{ALREADY}|taken as .+|(accepted, )?no effect.+|refused: .+"
)


@pytest.fixture(scope="module")
def found() -> Answers:
    """Return what becomes of each pair. A traceback, or a fault without a place, fails here."""
    return answers()


def test_the_page_has_the_answers_as_they_are(found: Answers) -> None:
    """The page has one row for each group of settings with the same answers, and no others."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)

    assert f"{BEGIN}{rest.partition(END)[0]}{END}\n" == block(found), (
        "run python -m tests.settings.client_page"
    )


def test_every_answer_is_one_of_a_few_words(found: Answers) -> None:
    """There are at least 99 pairs, each under eight prefixes."""
    assert len(found) >= 99
    assert [row for row in found.values() if not all(map(IN_FEW_WORDS.fullmatch, row))] == []
