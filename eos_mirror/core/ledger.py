"""
The ledger: what a flow did besides copying, one record each, readable indefinitely.

The key of a record is its kind, and its value is JSON, version 1 (docs/ledger.md). A reader must
skip kinds and fields that it does not know.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from eos_mirror.core.records import TopicPartition

VERSION: Final = 1


class Kind(Enum):
    """Kind of an entry."""

    FENCE = "fence"
    STOP = "stop"
    RESUME = "resume"
    GAP = "gap"
    DROP = "drop"
    QUARANTINE = "quarantine"
    REPLAY = "replay"
    STORM = "storm"
    MODE = "mode"
    RESET = "reset"
    REWIND = "rewind"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """
    One thing that happened.

    Attributes:
        at: Time, in UTC.
        by: Host and process id of the process that did it or detected it.
        details: Fields by name, as docs/ledger.md lists them for each kind.
    """

    kind: Kind
    at: datetime
    by: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def encode(self) -> str:
        """Return the value of the record."""
        head = {
            "version": VERSION,
            "kind": self.kind.value,
            "at": self.at.astimezone(UTC).isoformat(timespec="milliseconds"),
            "by": self.by,
        }
        return json.dumps({**head, **self.details}, separators=(",", ":"))


def decode_entry(value: str) -> LedgerEntry | None:
    """
    Decode an entry; None if a later version wrote it and this version does not know it.

    Raises:
        ValueError: Not an entry.
    """
    try:
        body = json.loads(value)
        version, kind = body.pop("version"), body.pop("kind")
        at, by = datetime.fromisoformat(body.pop("at")), str(body.pop("by"))
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        raise ValueError(f"not a ledger entry: {value[:80]!r}") from exc
    if version != VERSION or kind not in {one.value for one in Kind}:
        return None
    return LedgerEntry(kind=Kind(kind), at=at, by=by, details=body)


def stops_of(
    entries: Iterable[LedgerEntry], *, by: str, since: datetime
) -> dict[TopicPartition, LedgerEntry]:
    """
    Return the newest stop of each partition that is not over.

    Args:
        entries: Oldest first.
        by: The run that mirrors now. What an earlier run reported may have been repaired.
        since: When that run started.
    """
    stops: dict[TopicPartition, LedgerEntry] = {}
    for one in entries:
        if one.kind not in {Kind.STOP, Kind.RESUME} or one.by != by or one.at < since:
            continue
        topic, _, number = str(one.details.get("partition", "")).rpartition("-")
        if not number.isdecimal():
            continue
        partition = TopicPartition(topic, int(number))
        if one.kind is Kind.STOP:
            stops[partition] = one
        else:
            stops.pop(partition, None)
    return stops
