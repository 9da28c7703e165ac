"""
Provenance: a header of each copy lists the clusters that the record has passed.

It allows flows in a circle when names do not show where a topic comes from: a record that would
return to a cluster that it passed is skipped. At least once only: the copies lie among records of
other writers, and the exact map of a remote partition cannot include those.
"""

from dataclasses import replace

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import DecodedRun, Headers, RecordRun

HEADER = "eos-mirror.passed"
"""Aliases in the order in which they were passed, separated by commas. Every mirror must use the
same aliases."""


class Provenance:
    """Provenance of one flow. It has no state."""

    def __init__(self, flow: Flow) -> None:
        self._source = flow.source.encode()
        self._target = flow.target.encode()

    def onward(self, run: RecordRun) -> DecodedRun | None:
        """Return the part of a run that is copied, with the source added; None if nothing is."""
        records = run.decoded()
        kept: list[int] = []
        headers: list[Headers | None] = []
        for i, carried in enumerate(records.headers):
            passed = _passed(carried)
            if self._target not in passed:
                kept.append(i)
                others = [one for one in carried or () if one[0] != HEADER]
                headers.append([*others, (HEADER, b",".join([*passed, self._source]))])
        if len(kept) == records.count:
            return replace(records, headers=headers)
        if not kept:
            return None
        return records.selected(kept, headers)


def _passed(headers: Headers | None) -> list[bytes]:
    """Return the aliases in our header; if there are several, in the last one."""
    found = [value for name, value in headers or () if name == HEADER and value]
    return found[-1].split(b",") if found else []
