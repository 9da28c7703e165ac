"""
The fencing protocol, checked in every interleaving: the table of all variants.

    python -m tests.model.fencing_model              every variant
    python -m tests.model.fencing_model NAME -v      one variant, with its trace

One step is one request, handled atomically on arrival. A task may stall indefinitely between any
two steps, so a stopped process, a long GC pause and a slow network are just schedules.
Checked at every commit decision: the committed records of each partition are 0, 1, 2, ... in
log order. Checked at every end: everything was mirrored.
"""

import sys
import time
from collections.abc import Sequence

from tests.model.explorer import Finding, explore
from tests.model.table import VARIANTS
from tests.model.variants import Variant

HEAD = f"{'variant':28} {'expected':9} {'found':9} {'states':>8} {'edges':>8} {'s':>6}  note"


def main(arguments: Sequence[str]) -> int:
    """Print the table. Returns 1 if a variant did not end as expected, 2 for an unknown name."""
    verbose = "-v" in arguments
    names = [argument for argument in arguments if argument != "-v"] or list(VARIANTS)
    unknown = [name for name in names if name not in VARIANTS]
    if unknown:
        _print(f"unknown: {', '.join(unknown)}; there are: {', '.join(VARIANTS)}")
        return 2
    _print(HEAD)
    unexpected = 0
    for name in names:
        variant, started = VARIANTS[name], time.monotonic()
        finding = explore(variant)
        unexpected += finding.result != variant.expect
        _print(row(name, variant, finding, time.monotonic() - started))
        if verbose:
            for number, label in enumerate(finding.trace, start=1):
                _print(f"  {number:3}. {label}")
    return 1 if unexpected else 0


def row(name: str, variant: Variant, finding: Finding, elapsed_s: float) -> str:
    """Return one line of the table."""
    note = finding.violation or f"{finding.terminal} ends, {finding.cut} cut"
    if finding.trace:
        note += f", {len(finding.trace)} steps"
    if finding.result != variant.expect:
        note += "  <-- UNEXPECTED"
    return (
        f"{name:28} {variant.expect:9} {finding.result:9} {finding.states:8} {finding.edges:8}"
        f" {elapsed_s:6.1f}  {note}"
    )


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the table is the output of this program


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
