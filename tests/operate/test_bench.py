"""How a bench computes a rate from samples, and the number of tasks from trials."""

import pytest

from eos_mirror.operate.bench import Trial, steady_rate, tasks_for


def test_the_rate_leaves_out_the_warm_up_and_the_end() -> None:
    """The rate is measured from the first sample after a fifth of the records."""
    looks = [(0.0, 0), (5.0, 100), (6.0, 200), (7.0, 500), (8.0, 800), (9.0, 1000), (20.0, 1000)]
    assert steady_rate(looks, 1000) == 300


@pytest.mark.parametrize("looks", [[], [(0.0, 500)], [(0.0, 200), (0.3, 900), (0.6, 1000)]])
def test_too_short_a_look_is_no_rate(looks: list[tuple[float, int]]) -> None:
    """There is no rate if the samples cover too short a time."""
    assert steady_rate(looks, 1000) is None


@pytest.mark.parametrize(
    ("rates", "rate", "wanted"),
    [
        ({1: 150_000}, 100_000, 1),
        ({1: 100_000, 2: 180_000}, 100_000, 2),
        ({1: 100_000, 2: 180_000}, 300_000, 5),
        ({2: 200_000}, 200_000, 3),
        ({1: 100_000, 2: 105_000}, 100_000, None),
    ],
)
def test_tasks_for_a_rate_have_half_as_much_again(
    rates: dict[int, int], rate: int, wanted: int | None
) -> None:
    """
    The number of tasks is measured, or extrapolated from the last trial, with half as much again.

    There is no answer if the last trial shows that more tasks do not help.
    """
    trials = [Trial(tasks=tasks, rate=found) for tasks, found in rates.items()]
    assert tasks_for(rate, trials) == wanted
