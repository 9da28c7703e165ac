"""What `adopt --from` and `offsets rebuild` print of the copies that a flow continues."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from eos_mirror.core.flow import Flow
from eos_mirror.core.plural import counted
from eos_mirror.operate.copy_ends import CopiedPartition

REFUSED: Final = 4
CHANGES: Final = 5
"""Exit code of `--plan` if there is something to do."""


def plan_code(found: Sequence[CopiedPartition]) -> int:
    """Return the exit code of `--plan`."""
    if any(one.refusal for one in found):
        return REFUSED
    return CHANGES if found else 0


def copied_lines(found: Sequence[CopiedPartition]) -> str:
    """Return a line for each partition."""
    return "".join(f"{line}\n" for line in map(_line, found))


def _line(one: CopiedPartition) -> str:
    stored = "no position" if one.stored is None else str(one.stored)
    if one.refusal:
        return f"{one.source}: refused: {one.refusal}"
    matched = (
        f"{counted(one.compared, 'record')} of {one.remote} compared"
        if one.compared
        else f"nothing is left to compare with {one.remote}"
    )
    return (
        f"{one.source}: continues at {one.next_offset} ({one.by} stored {stored}; {matched}), "
        f"{counted(one.to_come or 0, 'offset')} to come"
    )


def copied_object(flow: Flow, found: Iterable[CopiedPartition]) -> str:
    """Return the same as an object of JSON."""
    return json_of(
        flow,
        (
            {
                "partition": str(one.source),
                "remote": str(one.remote),
                "stored": one.stored,
                "next_offset": one.next_offset,
                "compared": one.compared,
                "end": one.end,
                "to_come": one.to_come,
                "refusal": one.refusal,
            }
            for one in found
        ),
    )


def json_of(flow: Flow, rows: Iterable[dict[str, Any]]) -> str:
    """Return a line with an object of JSON: the flow, and its partitions."""
    return json.dumps({"flow": str(flow), "partitions": list(rows)}) + "\n"
