"""The pause between two transactions, on a fake clock."""

import pytest

from eos_mirror.kafka.marker_pause import MarkerPause

SENT_S, FLUSHED_S, COMMITTED_S = 0.0002, 0.003, 0.0015
"""How long the steps of a short transaction take: far less than the period."""
LASTED_S = SENT_S + FLUSHED_S + COMMITTED_S
REFUSED_S = FLUSHED_S + MarkerPause.REFUSED_S
A_WHILE = 2_000


class Transactions:
    """Transactions one after the other, each as soon as the pause is over."""

    def __init__(self) -> None:
        self.at = 0.0
        self._pause = MarkerPause(lambda: self.at)

    def one(self, *, flushed_s: float = FLUSHED_S, committed_s: float = COMMITTED_S) -> float:
        """Run one transaction; return the seconds of pause after it."""
        self.at += max(self._pause.left_s, 0.0)
        self._pause.end()
        self.at += SENT_S
        flushing_since = self.at
        self.at += flushed_s
        self._pause.learn(flushing_since=flushing_since)
        self.at += committed_s
        self._pause.begin(took_s=committed_s)
        return self._pause.left_s


def test_a_rest_that_the_period_hides_is_not_forgotten() -> None:
    """The pause is kept, or the transaction after the first longer one would be refused."""
    transactions = Transactions()
    hidden_s = [transactions.one() for _ in range(A_WHILE)][-1]
    assert hidden_s == pytest.approx(MarkerPause.PERIOD_S - LASTED_S)
    assert transactions.one(flushed_s=REFUSED_S) > min(hidden_s, MarkerPause.FIRST_S)


def test_a_rest_is_as_short_as_goes_without_refusals() -> None:
    """Transactions longer than the period shorten the pause until one is refused."""
    transactions = Transactions()
    before = transactions.one(flushed_s=MarkerPause.PERIOD_S)
    after = [transactions.one(flushed_s=MarkerPause.PERIOD_S) for _ in range(A_WHILE)][-1]
    assert after < before
    assert transactions.one(flushed_s=REFUSED_S) > after


def test_short_transactions_begin_a_period_apart() -> None:
    """A light load is not split into more transactions than help."""
    quick_s = SENT_S + 2 * COMMITTED_S
    pause_s = Transactions().one(flushed_s=COMMITTED_S)
    assert pause_s + quick_s == pytest.approx(MarkerPause.PERIOD_S)


@pytest.mark.parametrize(("committed_s", "pause_s"), [(0.006, 0.006), (1.0, MarkerPause.LONGEST_S)])
def test_markers_of_a_slow_commit_are_given_more_time(committed_s: float, pause_s: float) -> None:
    """After a slow commit the pause is as long as the commit took, up to a limit."""
    assert Transactions().one(committed_s=committed_s) == pytest.approx(pause_s)
