"""A reason is reported once until it changes."""

from eos_mirror.core.reported import Reported


def test_a_reason_is_reported_once_until_it_changes() -> None:
    """A chore that fails every second does not fill the log."""
    reported = Reported()

    assert [reported.is_new(reason) for reason in "aabba"] == [True, False, True, False, True]


def test_what_is_over_is_reported_again() -> None:
    """A failure that comes back after a success is reported again."""
    reported = Reported()

    assert reported.is_new()
    assert not reported.is_new()
    assert [reported.over(), reported.over()] == [True, False]
    assert reported.is_new()
