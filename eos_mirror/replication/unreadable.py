"""Separates the readable records of a run from a batch that is corrupt."""

from eos_mirror.core.records import DecodedRun, RecordRun
from eos_mirror.errors import UnreadableBatch


def readable_part(run: RecordRun) -> tuple[DecodedRun | None, UnreadableBatch | None]:
    """Return the records before the first unreadable batch of a run, and its fault if any."""
    try:
        return run.decoded(), None
    except UnreadableBatch as exc:
        return (None if exc.before is None else exc.before.decoded()), exc
