"""What was refused, why, and when it is tried again: soon at first, then less often."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
"""One request a minute is no load for a cluster, and a repair is detected within a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    reason: str
    pause_s: float
    due_s: float
    may_pass: bool
    is_reported: bool


class Retries:
    """What was refused, by name. Pure: time is passed in, as monotonic seconds."""

    def __init__(
        self, *, first_pause_s: float = FIRST_PAUSE_S, longest_pause_s: float = LONGEST_PAUSE_S
    ) -> None:
        self._first_pause_s, self._longest_pause_s = first_pause_s, longest_pause_s
        self._refusals: dict[str, _Refusal] = {}

    @property
    def names(self) -> set[str]:
        """Names that are refused, whether they must wait or not."""
        return set(self._refusals)

    def refused(self, name: str, reason: str, *, now_s: float, may_pass: bool = False) -> bool:
        """
        Note that an attempt was refused now. Each further refusal in a row doubles the pause.

        Args:
            may_pass: The cause may be over in a moment, as while a coordinator changes. It is
                reported only if it persists the next time. Two such causes in a row are one outage:
                a coordinator that comes back does not answer, then moves, then loads.

        Returns:
            True if the reason must be reported, because it is another one than before.
        """
        before = self._refusals.get(name)
        grown_s = 2 * before.pause_s if before else self._first_pause_s
        pause_s = min(grown_s, self._longest_pause_s)
        is_known = (
            before is not None
            and before.is_reported
            and (before.reason == reason or (before.may_pass and may_pass))
        )
        is_reported = is_known or before is not None or not may_pass
        self._refusals[name] = _Refusal(
            reason=reason,
            pause_s=pause_s,
            due_s=now_s + pause_s,
            may_pass=may_pass,
            is_reported=is_reported,
        )
        return is_reported and not is_known

    def accepted(self, names: Iterable[str]) -> None:
        """Forget these: they are not refused any more."""
        for name in names:
            self._refusals.pop(name, None)

    def waiting(self, names: Iterable[str], *, now_s: float) -> dict[str, str]:
        """Return those of these names that must not be tried yet, with the last reason."""
        return {
            name: refusal.reason
            for name in names
            if (refusal := self._refusals.get(name)) is not None and refusal.due_s > now_s
        }

    def keep(self, names: Collection[str]) -> None:
        """Forget all others: they are not refused any more."""
        self._refusals = {name: one for name, one in self._refusals.items() if name in names}

    def reset(self) -> None:
        """Allow every attempt now: the causes of the refusals may have changed."""
        self._refusals.clear()
