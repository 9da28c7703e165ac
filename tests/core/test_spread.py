"""Numbers over the last minute: exact inside the window, dropped after it, rates as in Kafka."""

from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.spread import SAMPLE_S, SAMPLES, Spread, Window

numbers = st.lists(st.integers(min_value=-(10**13), max_value=10**13), min_size=1)


@given(numbers, numbers, st.integers(min_value=0, max_value=10**13))
def test_a_spread_knows_what_its_numbers_know(
    first: list[int], second: list[int], moment: int
) -> None:
    """Joined and inverted spreads are the same as the spread of all numbers."""
    both = Spread.of(first).then(Spread.of(second))
    assert both == Spread.of(first + second)
    assert both.before(moment) == Spread.of([moment - number for number in first + second])
    assert Spread.decode(both.encode()) == both
    assert min(first + second) <= both.mean <= max(first + second)


def test_a_window_forgets_what_is_older_than_a_minute() -> None:
    """A window drops the samples older than a minute and joins the others."""
    window = Window(0.0)
    for at_s, number in ((0.0, 9), (29.0, 7), (31.0, 3), (59.0, 5)):
        window.add(at_s, spread=Spread.of([number]))
    assert window.spread(59.0) == Spread.of([9, 7, 3, 5])
    assert window.spread(60.0) == Spread.of([3, 5])  # the first sample began at 0
    assert window.spread(31.0 + SAMPLES * SAMPLE_S) is None
    assert window.last == 5


def test_a_rate_is_never_of_less_than_a_sample() -> None:
    """As in Kafka, a rate covers at least one sample, so the first second has no high rate."""
    window = Window(0.0)
    window.add(1.0, amount=300)
    assert window.rate(1.0) == 300 / (1.0 + SAMPLE_S)
    assert window.rate(40.0) == 300 / 40.0
    window.add(45.0, amount=100)
    assert window.rate(50.0) == 400 / 50.0
    assert window.rate(61.0) == 100 / (61.0 - 45.0 + SAMPLE_S)
    assert window.rate(1_000.0) == 0.0
