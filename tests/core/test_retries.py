"""Pauses before a refused topic is retried."""

from eos_mirror.core.retries import FIRST_PAUSE_S, LONGEST_PAUSE_S, Retries


def test_what_is_refused_again_and_again_is_tried_less_and_less_often() -> None:
    """Each pause is twice the previous one, up to the longest; the reason is kept meanwhile."""
    retries, now, pauses = Retries(), 100.0, []
    assert retries.waiting(["orders"], now_s=now) == {}
    for attempt in range(9):
        retries.refused("orders", f"reason {attempt}", now_s=now)
        began = now
        while retries.waiting(["orders", "other"], now_s=now):
            assert retries.waiting(["orders"], now_s=now) == {"orders": f"reason {attempt}"}
            now += 0.5
        pauses.append(now - began)

    assert pauses == [min(FIRST_PAUSE_S * 2**n, LONGEST_PAUSE_S) for n in range(9)]


def test_what_is_not_refused_any_more_begins_with_the_first_pause() -> None:
    """Pauses grow only while refusals follow each other without a success."""
    retries = Retries()
    for name in ("orders", "users"):
        retries.refused(name, "full", now_s=0)
        retries.refused(name, "full", now_s=10)
    retries.keep({"users"})
    retries.refused("orders", "full", now_s=20)
    retries.refused("users", "full", now_s=20)

    assert retries.names == {"orders", "users"}
    assert retries.waiting(["orders", "users"], now_s=20 + FIRST_PAUSE_S) == {"users": "full"}


def test_everything_may_be_tried_after_a_reset() -> None:
    """A reset ends all pauses, for example when the configuration has changed."""
    retries = Retries()
    retries.refused("orders", "full", now_s=0)
    retries.reset()

    assert retries.waiting(["orders"], now_s=0) == {}


def test_pauses_can_be_longer() -> None:
    """The first and the longest pause can be set."""
    retries = Retries(first_pause_s=60, longest_pause_s=100)
    retries.refused("orders", "gone", now_s=0)
    assert retries.waiting(["orders"], now_s=59)
    assert not retries.waiting(["orders"], now_s=60)
    retries.refused("orders", "gone", now_s=60)
    assert retries.waiting(["orders"], now_s=159)
    assert not retries.waiting(["orders"], now_s=160)


def test_a_reason_is_reported_once() -> None:
    """A reason is reported once; another one, or the same after a success, is reported again."""
    retries = Retries()

    assert [retries.refused("orders", "away", now_s=at) for at in range(3)] == [True, False, False]
    assert retries.refused("orders", "denied", now_s=9)
    assert retries.refused("users", "denied", now_s=9)
    retries.accepted(["orders"])
    assert retries.names == {"users"}
    assert retries.refused("orders", "denied", now_s=10)


def test_what_may_pass_is_reported_when_it_has_not_passed() -> None:
    """A refusal that may pass is reported only if it repeats, for example a moving coordinator."""
    retries = Retries()

    tried = [retries.refused("readers", "away", now_s=at, may_pass=True) for at in range(3)]

    assert tried == [False, True, False]


def test_causes_that_may_pass_are_one_outage() -> None:
    """A coordinator that comes back loads first; a reason that stays is reported after it."""
    retries = Retries()
    assert not retries.refused("g", "no answer", now_s=0.0, may_pass=True)
    assert retries.refused("g", "no answer", now_s=1.0, may_pass=True)
    assert not retries.refused("g", "it loads", now_s=3.0, may_pass=True)
    assert retries.refused("g", "denied", now_s=7.0)
    assert retries.refused("g", "no answer", now_s=15.0, may_pass=True)


def test_what_is_refused_keeps_no_other_one_waiting() -> None:
    """Only the refused name pauses, and a success ends the pause."""
    retries = Retries()
    retries.refused("readers", "away", now_s=0)

    assert retries.waiting(["readers", "writers"], now_s=0) == {"readers": "away"}
    retries.accepted(["readers", "writers"])
    assert retries.waiting(["readers", "writers"], now_s=0) == {}
