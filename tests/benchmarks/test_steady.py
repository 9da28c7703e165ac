"""The arithmetic from samples to the reported figures."""

import pytest

from benchmarks.steady import Sample, spread, steady_state, warm_tail


def sample(at: float, records: int, cpu_s: float) -> Sample:
    """Return a sample with one role."""
    return Sample(at=at, ends=[records], cpu_s={"task": cpu_s})


def test_the_start_and_the_end_are_left_out() -> None:
    """Rate and cost cover the time from 20 % of the records to the last sample before the end."""
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


def test_the_way_to_a_step_is_not_without_its_records() -> None:
    """The rate is the same whether commits are seen continuously or once a second."""
    smooth = [sample(at / 4, at * 125_000, at / 4) for at in range(33)]
    in_steps = [sample(at / 4, at // 4 * 500_000, at / 4) for at in range(33)]

    assert steady_state(smooth, total=4_000_000).rate == 500_000
    assert steady_state(in_steps, total=4_000_000).rate == 500_000
    assert steady_state(in_steps, total=4_000_000).cpu_s["task"] == pytest.approx(2)
    assert warm_tail(in_steps, total=4_000_000).rate == 500_000


def test_what_another_task_has_done_is_not_without_its_records() -> None:
    """The open transaction of the other task counts, so two tasks have twice the rate of one."""

    def committed(at_s: float, first_s: float) -> int:
        last_s = at_s if at_s < 4 else max(4, first_s + (at_s - first_s) // 2 * 2)
        return round(last_s * 500_000)

    looks = [
        Sample(
            at=at / 4,
            ends=[committed(at / 4, 5), committed(at / 4, 6)],
            cpu_s={"task": at / 4},
        )
        for at in range(65)
    ]

    for found in (steady_state(looks, total=15_500_000), warm_tail(looks, total=15_500_000)):
        assert found.rate == pytest.approx(1_000_000)
        assert found.cpu_s["task"] == pytest.approx(1)


def test_the_tail_is_the_second_half() -> None:
    """The tail is the second half, so it excludes most of a JVM's compilation."""
    looks = [sample(at, at * 100_000, at * at) for at in range(11)]

    tail = warm_tail(looks, total=1_000_000)

    assert (tail.seconds, tail.records) == (4, 400_000)
    assert tail.cpu_s["task"] == pytest.approx((81 - 25) / 0.4)


def test_the_tail_of_a_fast_copy_lasts_a_second() -> None:
    """The tail of a fast copy is extended into the first half, to one second."""
    looks = [sample(at / 5, at * 100_000, 0) for at in range(11)]

    tail = warm_tail(looks, total=1_000_000)

    assert tail.seconds == pytest.approx(1)
    assert tail.records == 500_000


def test_a_window_that_is_too_short_is_no_measurement() -> None:
    """Too few records for a steady state are an error, not a figure."""
    samples = [sample(0, 0, 0), sample(1, 50, 1), sample(1.5, 90, 1), sample(2, 100, 1)]

    with pytest.raises(ValueError, match="steady state"):
        steady_state(samples, total=100)


def test_a_figure_comes_with_its_range() -> None:
    """A figure is shown as median, lowest and highest value."""
    assert spread([3.0, 1.0, 2.0], ".1f") == "2.0 (1.0-3.0)"
