"""Where the end of a copy is in its source."""

import random

import pytest

from eos_mirror.core.tail_match import match_tail


def placed(records: str, first: int = 0) -> list[tuple[int, str]]:
    """Return records of one letter with adjacent offsets."""
    return list(enumerate(records, first))


@pytest.mark.parametrize(
    ("copied", "source", "stored", "found"),
    [
        ("abc", "abcdef", 3, 3),  # a clean stop
        ("abcde", "abcdef", 3, 5),  # more was written than stored
        ("abcabcd", "abcdef", 0, 4),  # written again after a restart
        ("xyzabc", "abcdef", 2, 3),  # what was before is compacted
        ("abb", "abbab", 3, 3),  # its end is there again, but what is before it differs
        ("c", "abcdef", 3, 3),  # everything else expired
    ],
)
def test_the_only_place_is_found(copied: str, source: str, stored: int, found: int) -> None:
    """It is at or after the stored position."""
    assert match_tail(copied, placed(source), stored=stored).next_offset == found


@pytest.mark.parametrize(
    ("copied", "source", "stored", "places"),
    [
        ("aaa", "aaaaaa", 3, (3, 4, 5, 6)),  # equal records
        ("aab", "aabaab", 3, (3, 6)),  # a part of the source comes twice
        ("abx", "abcdef", 2, ()),  # another client wrote last
        ("abc", "abcdef", 5, ()),  # the copy lost its end
        ("", "abcdef", 3, ()),
    ],
)
def test_without_one_place_there_is_no_answer(
    copied: str, source: str, stored: int, places: tuple[int, ...]
) -> None:
    """A guess would lose or double records."""
    match = match_tail(copied, placed(source), stored=stored)

    assert match.next_offset is None
    assert match.places == places


def test_many_places_are_counted_and_a_few_are_kept() -> None:
    """The text of the refusal names some."""
    match = match_tail("a", placed("a" * 100), stored=50)

    assert (match.count, match.places) == (51, (50, 51, 52, 53, 54))


@pytest.mark.parametrize("seed", range(300))
def test_the_true_place_is_never_excluded(seed: int) -> None:
    """Any copier that restarts at stored positions, on sources with many equal records."""
    dice = random.Random(seed)
    source = "".join(dice.choices("ab", k=30))
    copy, stored, end = "", 0, 0
    for _ in range(dice.randint(1, 5)):
        at = stored
        for _ in range(min(dice.randint(0, 8), len(source) - at)):
            copy += source[at]
            end = at = at + 1
            stored = dice.choice([stored, at])
    window = copy[-dice.randint(1, 20) :]
    match = match_tail(window, placed(source), stored=stored)

    assert not copy or end in match.places or match.count > len(match.places)
    assert match.next_offset in {None, end}
