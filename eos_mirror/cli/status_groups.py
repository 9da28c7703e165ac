"""What `status --groups` shows: whether each source group could resume on the target now."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from eos_mirror.cli.views import Line, Piece, Row, Tone, joined, line
from eos_mirror.core.plural import counted
from eos_mirror.operate.group_status import GroupStatus, group_statuses
from eos_mirror.settings.model import FlowSettings

NEXT_SYNC = "the next sync of the run moves it"
UNTRANSLATED, AHEAD, BEHIND = "not translated", "ahead of the mirror", "behind on the target"
TONES = {UNTRANSLATED: Tone.BAD, AHEAD: Tone.BUSY, BEHIND: Tone.WARNING}


def group_view(settings: FlowSettings, *, as_json: bool) -> Iterator[str | Row]:
    """
    Yield a header and the groups of a flow, or an object of JSON for each.

    Raises:
        SourceUnavailable, TargetUnavailable, NotAuthorized: As `group_statuses`.
    """
    groups = group_statuses(settings)
    if as_json:
        for one in groups:
            yield json.dumps({"flow": str(settings.flow), **_object(one)})
        return
    header = counted(len(groups), "group")
    yield f"{settings.flow}: {header}, {_totals(groups, str(settings.flow.target))}"
    for one in groups:
        yield group_row(one)


def group_row(status: GroupStatus) -> Row:
    """Return the row of a group."""
    name, size = status.group or "(no name)", len(status.partitions)
    cells = {
        "group": line(name),
        "partitions": line("" if status.is_skipped else f"{size:,}"),
        "state": _state(status),
        "reason": line(_reason(status)),
    }
    return Row(line=f"  {name}: {_text(status)}", cells=cells, numbers=["partitions"])


def _totals(groups: Sequence[GroupStatus], target: str) -> str:
    """Return the counts of the header. "0 behind" is true only if every group is translated."""
    counts = {
        f"behind on {target}": sum(any(p.is_behind for p in one.partitions) for one in groups),
        UNTRANSLATED: sum(one.is_untranslated for one in groups),
        "skipped": sum(one.is_skipped for one in groups),
    }
    said = [f"{count} {what}" for what, count in counts.items() if count]
    is_complete = not (counts[f"behind on {target}"] or counts[UNTRANSLATED])
    return ", ".join([f"0 behind on {target}", *said] if is_complete else said)


def _object(status: GroupStatus) -> dict[str, Any]:
    return {
        "group": status.group,
        "reason": status.reason,
        "partitions": [
            {
                **asdict(one),
                "source": str(one.source),
                "remote": str(one.remote),
                "ahead": one.is_ahead,
                "behind": one.is_behind,
            }
            for one in status.partitions
        ],
    }


def _counts(status: GroupStatus) -> dict[str, int]:
    """Return how many partitions of a group are in each state that is not `in step`."""
    counts = {
        UNTRANSLATED: sum(one.upstream is None for one in status.partitions),
        AHEAD: sum(one.is_ahead for one in status.partitions),
        BEHIND: sum(one.is_behind for one in status.partitions),
    }
    return {what: count for what, count in counts.items() if count}


def _reason(status: GroupStatus) -> str:
    """Return why a group is skipped, or why it stays behind or untranslated; empty if it is not."""
    counts = _counts(status)
    if not status.reason and BEHIND in counts:
        return NEXT_SYNC
    matters = status.is_skipped or not {UNTRANSLATED, BEHIND}.isdisjoint(counts)
    return status.reason if matters else ""


def _text(status: GroupStatus) -> str:
    if status.is_skipped:
        return f"skipped: {status.reason}"
    said = [f"{count} {what}" for what, count in _counts(status).items()]
    text = ", ".join([counted(len(status.partitions), "partition"), *(said or ["in step"])])
    reason = _reason(status)
    return f"{text}: {reason}" if reason else text


def _state(status: GroupStatus) -> Line:
    if status.is_skipped:
        return line(Piece("skipped", Tone.BAD))
    pieces = [Piece(f"{count} {what}", TONES[what]) for what, count in _counts(status).items()]
    return joined(pieces or [Piece("in step", Tone.GOOD)])
