"""Everything outside a mirror task."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import TopicPartition
from eos_mirror.ports import (
    ClaimsLog,
    PlainProducer,
    RebalanceListener,
    Source,
    SourceMetadata,
    Target,
)

NotePositions = Callable[[Mapping[TopicPartition, tuple[TopicPartition, int]]], None]
"""Takes source partition and position by remote partition: everything before it is acknowledged,
and nothing from there on was sent. Raises RestartTask and NotAuthorized by class."""


def _nobody() -> PlainProducer:
    raise RuntimeError("this world has no producer without transactions")


def _nowhere(kind: Kind, details: Mapping[str, Any]) -> None:
    raise RuntimeError(f"this world has no ledger for {kind}: {details}")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    The clusters, as a task reaches them.

    Attributes:
        claims: Exactly once only.
        open_plain_producer: At least once only.
        note_positions: Likewise. For groups, which go on there.
        note: Likewise. Writes an entry of the ledger, as of now, with details as `core/ledger.py`
            has them; returns when all in-sync replicas have it, raises RestartTask by class.
    """

    open_source: Callable[[RebalanceListener], Source]
    metadata: SourceMetadata
    target: Target
    claims: ClaimsLog | None = None
    open_plain_producer: Callable[[], PlainProducer] = _nobody
    note_positions: NotePositions = lambda _positions: None
    note: Callable[[Kind, Mapping[str, Any]], None] = _nowhere
