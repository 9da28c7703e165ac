"""How far the first catch-up of a flow is."""

from eos_mirror.core.catch_up import CatchUp
from eos_mirror.core.records import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def test_the_ends_of_the_first_look_are_what_counts() -> None:
    """A source that grows does not prolong it, and a position after its end counts no more."""
    progress = CatchUp()
    progress.look({A: (100, 300), B: (0, 50)}, left_out=[])
    assert (progress.done, progress.total, progress.is_over) == (0, 250, False)

    progress.look({A: (200, 900), B: (70, 900)}, left_out=[])
    assert (progress.done, progress.total, progress.is_over) == (150, 250, False)

    progress.look({A: (300, 900), B: (70, 900)}, left_out=[])
    assert (progress.done, progress.total, progress.is_over) == (250, 250, True)


def test_a_partition_that_is_not_mirrored_holds_nothing_up() -> None:
    """One that is paused, stopped or waits does not count while it is; a deleted one is done."""
    progress = CatchUp()
    progress.look({A: (0, 100), B: (0, 100)}, left_out=[])
    progress.look({A: (40, 100), B: (0, 100)}, left_out=[B])
    assert (progress.done, progress.total) == (40, 100)

    progress.look({A: (40, 100), B: (10, 100)}, left_out=[])
    assert (progress.done, progress.total) == (50, 200)

    progress.look({A: (100, 100)}, left_out=[])
    assert progress.is_over


def test_nothing_is_over_before_something_was_seen() -> None:
    """A cluster that does not answer says nothing."""
    progress = CatchUp()
    progress.look({}, left_out=[])
    assert not progress.is_over

    progress.look({A: (5, 5)}, left_out=[])
    assert progress.is_over


def test_a_position_that_went_back_is_no_negative_progress() -> None:
    """The topic was created again."""
    progress = CatchUp()
    progress.look({A: (50, 100)}, left_out=[])
    progress.look({A: (0, 100)}, left_out=[])
    assert (progress.done, progress.total) == (0, 50)
