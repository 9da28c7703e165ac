"""The rows of `status`: flows, topics and entries of the ledger."""

from collections import Counter
from collections.abc import Iterable, Sequence

from eos_mirror.cli.views import TONES, Line, Piece, Row, Tone, joined, line, state
from eos_mirror.core.ledger import Kind, LedgerEntry
from eos_mirror.core.states import GRAVEST, State
from eos_mirror.operate.partition_status import PartitionStatus
from eos_mirror.operate.status import FlowStatus

KIND_TONES = {
    Kind.STOP: Tone.BAD,
    Kind.DROP: Tone.BAD,
    Kind.QUARANTINE: Tone.WARNING,
    Kind.STORM: Tone.WARNING,
    Kind.GAP: Tone.WARNING,
    Kind.REWIND: Tone.WARNING,
    Kind.RESUME: Tone.GOOD,
    Kind.REPLAY: Tone.GOOD,
}
"""The tone of each kind of entry that is not an everyday one."""


def overview(statuses: Iterable[FlowStatus]) -> list[Row]:
    """Return a row for each flow, for a terminal only."""
    return [
        Row(
            line=None,
            cells={
                "flow": line(one.flow),
                "state": line(state(one.state)),
                "mode": line(one.mode.value if one.mode else "never ran"),
                "partitions": line(f"{len(one.partitions):,}"),
                "lag": line(lag_of(one.partitions)),
                "run": line(one.run.runs.leader.host if one.run.runs.leader else ""),
            },
            numbers=("partitions", "lag"),
        )
        for one in statuses
    ]


def topic_row(topic: str, partitions: Sequence[PartitionStatus], *, text: str) -> Row:
    """
    Return the row of a topic.

    Args:
        text: The same as a line.
    """
    return Row(
        line=text,
        cells={
            "topic": line(topic),
            "partitions": line(f"{len(partitions):,}"),
            "lag": line(lag_of(partitions)),
            "states": _counted(one.condition.state for one in partitions),
        },
        numbers=("partitions", "lag"),
    )


def entry_row(entry: LedgerEntry, *, details: str, text: str) -> Row:
    """
    Return the row of an entry of the ledger.

    Args:
        details: Its fields.
        text: The same as a line.
    """
    return Row(
        line=text,
        cells={
            "time": line(entry.at.isoformat(sep=" ", timespec="seconds")),
            "kind": line(Piece(entry.kind.value, KIND_TONES.get(entry.kind))),
            "details": line(details),
        },
    )


def lag_of(partitions: Sequence[PartitionStatus]) -> str:
    """Return the lag of these partitions together, as far as it is known."""
    known = [one.lag for one in partitions if one.lag is not None]
    unknown = len(partitions) - len(known)
    if not known and unknown:
        return "unknown"
    return f"{sum(known):,}" + (f" and unknown of {unknown}" if unknown else "")


def _counted(states: Iterable[State]) -> Line:
    counts = Counter(states)
    return joined(Piece(f"{counts[one]} {one.value}", TONES[one]) for one in GRAVEST if counts[one])
