"""The results of a run, as one table and as JSON."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.chaos.measures import percentile

SHOWN = 10
HALF, MOST = 0.5, 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """
    The results of a run.

    Attributes:
        title: Seed, runtime, minutes, version and so on.
        faults: Number of faults by kind.
        figures: Everything else that is counted or measured; None if it could not be.
        recovery_s: Seconds to the next record, by kind of fault.
        complaints: Complaints by checker; a checker that found nothing wrong has none.
        caught_after_s: When a reader of the copy could first see that it is wrong.
    """

    title: Mapping[str, object]
    faults: Counter[str]
    figures: Mapping[str, object]
    recovery_s: Mapping[str, Sequence[float]]
    complaints: Mapping[str, Sequence[str]]
    caught_after_s: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the checkers ran and none complained."""
        return bool(self.complaints) and not any(self.complaints.values())

    def __str__(self) -> str:
        lines = [", ".join(f"{name} {value}" for name, value in self.title.items()), ""]
        lines += [f"{name:32} {_shown(value)}" for name, value in self.figures.items()]
        lines += ["", f"{'fault':16} {'n':>4} {'p50 s':>8} {'p99 s':>8} {'max s':>8}"]
        for kind, count in sorted(self.faults.items()):
            spent = self.recovery_s.get(kind, ())
            shown = [percentile(spent, share) for share in (HALF, MOST, 1)]
            lines.append(f"{kind:16} {count:>4} " + " ".join(f"{_shown(s):>8}" for s in shown))
        lines += ["", *self._verdicts(), "", self._verdict()]
        return "\n".join(lines)

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(
            {
                "title": self.title,
                "holds": self.holds,
                "faults": self.faults,
                "figures": self.figures,
                "recovery_s": {kind: list(spent) for kind, spent in self.recovery_s.items()},
                "complaints": self.complaints,
                "caught_after_s": self.caught_after_s,
            },
            indent=1,
        )

    def _verdicts(self) -> list[str]:
        lines = []
        for checker, complaints in self.complaints.items():
            lines.append(f"{checker:32} {f'{len(complaints)} complaints' if complaints else 'ok'}")
            lines += [f"    {text[:600]}" for text in complaints[:SHOWN]]
        return lines

    def _verdict(self) -> str:
        broken = self.title.get("broken")
        if self.holds:
            return f"NOT CAUGHT: {broken} passed" if broken else "HOLDS"
        if broken and self.caught_after_s is not None:
            return f"CAUGHT, as it should be: a reader saw it after {self.caught_after_s:.1f} s"
        return "FAILED"


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
