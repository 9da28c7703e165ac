"""Transaction boundaries: each limit ends a transaction, and nothing else does."""

from dataclasses import replace
from typing import Any

import pytest

from eos_mirror.core.boundary import Boundary, Pace

BOUNDARY = Boundary(
    interval_s=0.1, timeout_s=60.0, max_bytes=1000, max_records=10, every_poll=False
)
NOTHING = {"size_bytes": 0, "records": 0}
LARGE = replace(BOUNDARY, max_bytes=1 << 30, max_records=1 << 30)
YOUNG: dict[str, Any] = {
    "opened_at": 50.0,
    "now": 50.05,
    "size_bytes": 999,
    "records": 9,
    "queue_empty": False,
}


def test_a_transaction_within_its_limits_goes_on() -> None:
    """A transaction just below every limit is not committed while there is more to read."""
    assert not Pace(BOUNDARY).due(**YOUNG)


@pytest.mark.parametrize(
    "reached",
    [{"now": 50.2}, {"size_bytes": 1000}, {"records": 10}, {"queue_empty": True}],
    ids=lambda reached: next(iter(reached)),
)
def test_each_limit_alone_ends_a_transaction(reached: dict[str, Any]) -> None:
    """Age, size, count or an empty queue is each enough to end a transaction."""
    assert Pace(BOUNDARY).due(**YOUNG | reached)


def test_a_transaction_ends_after_each_poll_if_so_configured() -> None:
    """With `transaction.boundary=poll`, every poll ends the transaction."""
    each = replace(BOUNDARY, every_poll=True)

    assert Pace(each).due(**YOUNG)


def test_an_empty_transaction_is_never_due() -> None:
    """Idle partitions cause no commits."""
    each = replace(BOUNDARY, interval_s=0.0, max_bytes=0, max_records=0, every_poll=True)

    assert not Pace(each).due(
        **YOUNG | {"records": 0, "size_bytes": 0, "now": 99.0, "queue_empty": True}
    )


def after(commit_s: float, boundary: Boundary = BOUNDARY) -> Pace:
    """Return a pace that has seen many commits of this duration."""
    pace = Pace(boundary)
    for _ in range(100):
        pace.committed(commit_s, **NOTHING)
    return pace


@pytest.mark.parametrize(
    ("commit_s", "ends_at_s"),
    [(0.0005, 0.1), (0.01, 1.28), (1.0, 2.0)],
    ids=["short beside the interval", "long", "longer than 20 intervals allow"],
)
def test_where_records_wait_a_transaction_is_worth_its_commit(
    commit_s: float, ends_at_s: float
) -> None:
    """
    While records wait, a transaction is filled for 128 times as long as a commit takes.

    The lower bound is one interval, the upper bound 20 intervals.
    """
    pace = after(commit_s)

    assert not pace.due(**YOUNG | {"now": 50.0 + ends_at_s - 0.001})
    assert pace.due(**YOUNG | {"now": 50.0 + ends_at_s + 0.001})


@pytest.mark.parametrize("reached", [{"size_bytes": 1000}, {"records": 10}, {"queue_empty": True}])
def test_long_commits_move_no_other_limit(reached: dict[str, Any]) -> None:
    """Long commits change only the limit on age: a task that has caught up commits immediately."""
    assert after(1.0).due(**YOUNG | reached)


@pytest.mark.parametrize(
    ("interval_s", "timeout_s", "ends_at_s"),
    [(0.3, 60.0, 2.0), (5.0, 60.0, 5.0), (0.1, 4.0, 1.0), (3.0, 4.0, 3.0)],
)
def test_it_comes_nowhere_near_the_timeout_of_a_transaction(
    interval_s: float, timeout_s: float, ends_at_s: float
) -> None:
    """Long commits never extend a long interval, or an interval near a short timeout."""
    boundary = replace(BOUNDARY, interval_s=interval_s, timeout_s=timeout_s)
    pace = after(1.9, boundary)

    assert not pace.due(**YOUNG | {"now": 50.0 + ends_at_s - 0.001})
    assert pace.due(**YOUNG | {"now": 50.0 + ends_at_s + 0.001})


def test_one_long_commit_does_not_set_the_pace() -> None:
    """A single long commit has no effect on the limits for long."""
    pace = after(0.0005)
    pace.committed(0.05, **NOTHING)
    for _ in range(32):
        pace.committed(0.0005, **NOTHING)

    assert pace.due(**YOUNG | {"now": 50.101})


def most_records(pace: Pace) -> int:
    """Return the largest number of records in a transaction, rounded up to a power of two."""
    small = YOUNG | {"size_bytes": 0}
    return next(1 << n for n in range(31) if pace.due(**small | {"records": 1 << n}))


def test_a_task_begins_with_little_and_doubles_it() -> None:
    """The first transactions are small, because the target may have a quota, and then double."""
    pace = Pace(LARGE)
    found = [most_records(pace)]
    for _ in range(3):
        pace.committed(0.01, size_bytes=0, records=found[-1])
        found.append(most_records(pace))

    assert found == [1 << 10, 1 << 11, 1 << 12, 1 << 13]


def test_what_was_small_says_nothing_of_what_is_large() -> None:
    """Small transactions do not raise the limit: an idle task starts small when it lags."""
    pace = after(0.01, LARGE)

    assert most_records(pace) == most_records(Pace(LARGE))


def test_a_target_that_takes_long_is_sent_less() -> None:
    """A slow commit halves the limit, down to a single poll, until commits are fast enough."""
    pace = Pace(LARGE)
    before = most_records(pace)
    pace.committed(3.0, size_bytes=0, records=before)
    assert most_records(pace) == before // 2

    for _ in range(20):
        pace.committed(3.0, size_bytes=0, records=1)
    assert most_records(pace) == 1


def test_the_limits_of_the_file_are_not_passed() -> None:
    """The configured limits hold even if the target is fast."""
    pace = Pace(BOUNDARY)
    for _ in range(20):
        pace.committed(0.01, size_bytes=1000, records=10)

    assert not pace.due(**YOUNG)
    assert pace.due(**YOUNG | {"records": 10})
