"""
Numbers of a stream over the last minute, as in Kafka's metrics. Pure: time is passed in.

Source: Kafka's SampledStat, Rate and MetricConfig (two samples of thirty seconds).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SAMPLE_S: Final = 30.0
SAMPLES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Count, total, extremes and last of some numbers; at least one number."""

    count: int
    total: int
    low: int
    high: int
    last: int

    @staticmethod
    def of(numbers: Sequence[int]) -> "Spread":
        """Return the spread of a list that is not empty."""
        return Spread(
            count=len(numbers),
            total=sum(numbers),
            low=min(numbers),
            high=max(numbers),
            last=numbers[-1],
        )

    @property
    def mean(self) -> float:
        """Mean of all numbers."""
        return self.total / self.count

    def then(self, later: "Spread | None") -> "Spread":
        """Return the spread with later numbers added."""
        if later is None:
            return self
        return Spread(
            count=self.count + later.count,
            total=self.total + later.total,
            low=min(self.low, later.low),
            high=max(self.high, later.high),
            last=later.last,
        )

    def before(self, moment: int) -> "Spread":
        """Return how long before this moment each number was, read as a point in time."""
        return Spread(
            count=self.count,
            total=moment * self.count - self.total,
            low=moment - self.high,
            high=moment - self.low,
            last=moment - self.last,
        )

    def encode(self) -> tuple[int, ...]:
        """Return the JSON form that `decode` reads."""
        return (self.count, self.total, self.low, self.high, self.last)

    @staticmethod
    def decode(numbers: Sequence[int]) -> "Spread":
        """Return a spread from the JSON form of `encode`."""
        count, total, low, high, last = numbers
        return Spread(count=count, total=total, low=low, high=high, last=last)


@dataclass(slots=True)
class _Sample:
    since_s: float
    spread: Spread | None = None
    amount: int = 0


class Window:
    """
    The samples of one stream that are not older than a minute.

    Attributes:
        last: The last number of all, however old; None before the first one.
    """

    def __init__(self, now_s: float) -> None:
        self._samples = [_Sample(now_s)]
        self.last: int | None = None

    def add(self, now_s: float, *, amount: int = 0, spread: Spread | None = None) -> None:
        """
        Add to the newest sample.

        Args:
            amount: Counted by `rate`.
            spread: Counted by `spread`.
        """
        if now_s - self._samples[-1].since_s >= SAMPLE_S:
            self._samples.append(_Sample(now_s))
            self._forget(now_s)
        sample = self._samples[-1]
        sample.amount += amount
        if spread is not None:
            self.last = spread.last
            sample.spread = spread if sample.spread is None else sample.spread.then(spread)

    def spread(self, now_s: float) -> Spread | None:
        """Return the spread of everything in the window; None if the window is empty."""
        self._forget(now_s)
        found: Spread | None = None
        for sample in self._samples:
            if sample.spread is not None:
                found = sample.spread if found is None else found.then(sample.spread)
        return found

    def rate(self, now_s: float) -> float:
        """Return the amount per second."""
        self._forget(now_s)
        elapsed_s = now_s - self._samples[0].since_s
        missing = SAMPLES - 1 - int(elapsed_s // SAMPLE_S)
        return sum(sample.amount for sample in self._samples) / (
            elapsed_s + max(0, missing) * SAMPLE_S
        )

    def _forget(self, now_s: float) -> None:
        oldest = now_s - SAMPLES * SAMPLE_S
        self._samples = [s for s in self._samples if s.since_s > oldest] or [_Sample(now_s)]
