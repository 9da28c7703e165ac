"""Reports something once until it changes or is over."""


class Reported:
    """Remembers the last report of one kind. Pure; one thread uses it."""

    def __init__(self) -> None:
        self._last: str | None = None

    def is_new(self, reason: str = "") -> bool:
        """
        Return True if this must be reported: it differs from the last report, or there is none.

        Args:
            reason: Empty: report the first one only, whatever the reasons are.
        """
        is_new, self._last = reason != self._last, reason
        return is_new

    def over(self) -> bool:
        """Note that the cause is gone: the next report is new. Return True if it was reported."""
        was_reported, self._last = self._last is not None, None
        return was_reported
