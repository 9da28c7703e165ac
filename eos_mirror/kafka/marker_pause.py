"""The pause between a commit and the next record, while the brokers write commit markers."""

import time
from collections.abc import Callable


class MarkerPause:
    """
    Delays the first record of a transaction until the last commit's markers are probably written.

    A commit is answered before its markers are written. Until then a broker refuses to add the
    partition to the next transaction (CONCURRENT_TRANSACTIONS), and librdkafka tries again only
    after 20 ms.

    After a short transaction the pause adapts: each refusal makes it longer by 0.5 ms, each flush
    without one shorter by 0.005 ms. So about one transaction in a hundred is refused. A refusal
    looks the same as a broker that stood still; with steps for one in two hundred, what a
    freshly started broker had taught was forgotten only after a minute.

    After a long transaction the pause is fixed: the next one lasts so long that a refusal delays
    nothing, so none is ever seen. It still costs: the records wait in memory and are then sent in
    one burst, which is 7 % of the CPU time of two tasks on two cores.

    Transactions begin 9 ms apart at least. One costs the brokers the same whatever it contains,
    and shorter ones did not lower the latency of a record. Where this period is longer than the
    adaptive pause, nothing is learned about the pause.

    After a slow commit the markers are late, too: the pause is then at least as long as the
    commit took, up to 10 ms.

    Source: measured on Kafka 4.3.1 with librdkafka 2.16.0; `python -m benchmarks latency`.
    """

    REFUSED_S = 0.02
    """librdkafka's delay after CONCURRENT_TRANSACTIONS; also divides short from long."""
    PERIOD_S = 0.009
    FIRST_S, LONGEST_S = 0.004, 0.01
    LONGER_S, SHORTER_S = 0.0005, 0.000005
    AFTER_LONG_S = 0.006

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._pause_s = self.FIRST_S
        self._began_at = self._over_at = 0.0
        self.was_short = self._was_tried = False

    @property
    def left_s(self) -> float:
        """Seconds that are left of the pause; 0 or less when it is over."""
        return self._over_at - self._now()

    def end(self) -> None:
        """Records are produced from now on."""
        self._began_at = self._now()

    def learn(self, *, flushing_since: float) -> None:
        """Adapt after a flush: one that took 20 ms or more met a refusal."""
        now = self._now()
        self.was_short = flushing_since - self._began_at < self.REFUSED_S
        if not self.was_short:
            return
        if now - flushing_since >= self.REFUSED_S:
            self._pause_s = min(self._pause_s + self.LONGER_S, self.LONGEST_S)
        elif self._was_tried:
            self._pause_s = max(self._pause_s - self.SHORTER_S, 0.0)

    def begin(self, *, took_s: float) -> None:
        """Start the pause after a commit that took `took_s`."""
        now = self._now()
        if self.was_short:
            late_s = min(took_s, self.LONGEST_S)
            anyway_until = max(now + late_s, self._began_at + self.PERIOD_S)
            self._over_at = max(now + self._pause_s, anyway_until)
            self._was_tried = self._over_at > anyway_until
        else:
            self._over_at = now + self.AFTER_LONG_S
