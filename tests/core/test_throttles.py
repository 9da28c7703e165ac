"""A limit is shared by need and never exceeded; a bucket allows no more than its share."""

import random

import pytest

from eos_mirror.core.throttles import BURST_S, Bucket, Limit, Use, shares

SEEDS = range(200)


def use(rate: float, *, waits: bool = False) -> Use:
    """Return what a task used of both kinds of limit."""
    return Use(used=Limit(bytes_per_s=rate, records_per_s=rate), waits=waits)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_shares_never_exceed_the_limit(seed: int) -> None:
    """Each share is above zero, so that every task can begin."""
    dice = random.Random(seed)
    limit = Limit(bytes_per_s=dice.uniform(1, 1e9), records_per_s=dice.uniform(0.1, 1e6))
    uses = [use(dice.uniform(0, 1e6), waits=dice.random() < 0.5) for _ in range(dice.randint(1, 9))]

    found = shares(limit, uses)

    for whole, parts in (
        (limit.bytes_per_s, [one.bytes_per_s for one in found]),
        (limit.records_per_s, [one.records_per_s for one in found]),
    ):
        known = [part for part in parts if part is not None]
        assert len(known) == len(uses)
        assert min(known) > 0
        assert sum(known) <= (whole or 0) * 1.0001


def test_a_task_for_which_records_wait_gets_what_the_others_do_not_need() -> None:
    """All load may be on one of two tasks; the other one can still begin."""
    waiting, idle = shares(Limit(records_per_s=1_000), [use(500, waits=True), use(0)])
    assert waiting.records_per_s == 990
    assert idle.records_per_s == 10
    assert waiting.bytes_per_s is idle.bytes_per_s is None


def test_a_task_keeps_a_little_more_than_it_uses() -> None:
    """Its load may grow, and records that wait would show it a second later only."""
    waiting, steady = shares(Limit(records_per_s=1_000), [use(700, waits=True), use(200)])
    assert (waiting.records_per_s, steady.records_per_s) == (750, 250)


@pytest.mark.parametrize("waits", [True, False])
def test_tasks_with_the_same_need_have_the_same_share(waits: bool) -> None:
    """All wait, or none does."""
    found = shares(Limit(bytes_per_s=900), [use(10, waits=waits) for _ in range(3)])
    assert [one.bytes_per_s for one in found] == [300, 300, 300]


def handed_over(bucket: Bucket, *, seconds: float, size: int = 100, every_s: float = 0.02) -> int:
    """Take records whenever the bucket has room; return how many these were."""
    count, steps = 0, round(seconds / every_s)
    for step in range(1, steps + 1):
        bucket.fill(now=step * every_s)
        room = bucket.room(500, 500 * size)
        bucket.take(room, room * size)
        count += room
    return count


@pytest.mark.parametrize("rate", [3, 40, 1_000, 90_000])
def test_over_thirty_seconds_a_bucket_allows_its_share(rate: int) -> None:
    """By records, or by bytes."""
    by_records = handed_over(Bucket(Limit(records_per_s=rate), now=0), seconds=30, every_s=0.005)
    by_bytes = handed_over(Bucket(Limit(bytes_per_s=rate * 100), now=0), seconds=30, every_s=0.005)
    for count in (by_records, by_bytes):
        assert 0.95 * rate * 30 <= count <= rate * 30 + 1


def test_what_was_not_used_is_kept_for_a_moment_only() -> None:
    """After an hour without records, the next ones are not copied all together."""
    bucket = Bucket(Limit(records_per_s=100), now=0)
    bucket.fill(now=3_600)
    assert bucket.room(500, 500) == 100 * BURST_S


def test_a_record_larger_than_a_second_of_the_share_is_copied_too() -> None:
    """The next one waits for as long as the share needs for both."""
    bucket = Bucket(Limit(bytes_per_s=1_000), now=0)
    bucket.fill(now=1)
    assert bucket.room(3, 15_000) == 1
    bucket.take(1, 5_000)
    bucket.fill(now=5)
    assert bucket.room(2, 10_000) == 0
    bucket.fill(now=6)
    assert bucket.room(2, 10_000) == 1


def test_records_are_handed_over_in_portions() -> None:
    """A record now and a record then would cost a cut of a run each."""
    bucket = Bucket(Limit(records_per_s=1_000), now=0)
    bucket.fill(now=0.01)
    assert bucket.room(500, 500) == 0
    assert bucket.room(3, 3) == 3
    bucket.fill(now=0.1)
    assert bucket.room(500, 500) == 100


def test_a_limit_is_written_for_people() -> None:
    """As `status` and the log show it."""
    assert str(Limit(bytes_per_s=5e6, records_per_s=1e3)) == "5,000,000 bytes/s and 1,000 records/s"
    assert str(Limit()) == "no limit"
    assert not Limit()
