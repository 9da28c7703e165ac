"""One deadline for all requests of an operation."""

from datetime import timedelta

from eos_mirror.kafka.deadline import ANSWER, LEAST_S, Deadline


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_request_gets_half_of_a_short_time() -> None:
    """A lost answer can be asked for again before the time is over."""
    assert Deadline(timedelta(seconds=4), Clock()).answer_s == 2.0


def test_a_request_never_gets_more_than_one_answer_may_take() -> None:
    """A request gets the time of one answer at most, however long the operation may take."""
    assert Deadline(timedelta(hours=1), Clock()).answer_s == ANSWER.total_seconds()


def test_the_last_request_gets_what_is_left() -> None:
    """No attempt runs past the deadline by its own timeout; the client needs a positive one."""
    clock = Clock()
    deadline = Deadline(timedelta(seconds=4), clock)

    clock.now += 3.0
    assert deadline.answer_s == 1.0
    clock.now += 2.0
    assert (deadline.answer_s, deadline.is_over) == (LEAST_S, True)
