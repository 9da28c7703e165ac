"""The arithmetic between samples and the figures that are reported."""

import pytest

from benchmarks.steady import Sample, spread, steady_state


def sample(at: float, records: int, cpu_s: float) -> Sample:
    """One role."""
    return Sample(at=at, records=records, cpu_s={"task": cpu_s})


def test_the_start_and_the_end_are_left_out() -> None:
    """Rate and cost are of the time between 20 % and the last look before the end."""
    samples = [
        sample(0, 0, 5.0),
        sample(1, 199_000, 9.0),
        sample(2, 300_000, 10.0),
        sample(4, 900_000, 11.5),
        sample(9, 1_000_000, 20.0),
    ]

    steady = steady_state(samples, total=1_000_000)

    assert steady.seconds == 2
    assert steady.records == 600_000
    assert steady.rate == 300_000
    assert steady.cpu_s["task"] == pytest.approx(2.5)


def test_a_window_that_is_too_short_is_no_measurement() -> None:
    """Too few records for a steady state are an error, not a figure."""
    samples = [sample(0, 0, 0), sample(1, 50, 1), sample(1.5, 90, 1), sample(2, 100, 1)]

    with pytest.raises(ValueError, match="steady state"):
        steady_state(samples, total=100)


def test_a_figure_comes_with_its_range() -> None:
    """Median, lowest and highest."""
    assert spread([3.0, 1.0, 2.0], ".1f") == "2.0 (1.0-3.0)"
