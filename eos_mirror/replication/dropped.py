"""Notes records that are not copied: in the ledger, before the position passes them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import RecordRun
from eos_mirror.core.topic_limits import RefusedRecords
from eos_mirror.ports import TaskContext
from eos_mirror.replication.adapters import Ledger
from eos_mirror.replication.config import FLUSH_BUDGET, WATCH_MARGIN
from eos_mirror.replication.partition import OwnedPartition

DROPPED: Final = "records.dropped"
QUARANTINED: Final = "records.quarantined"


class Dropped(NamedTuple):
    """
    Adjacent records of a partition that are not copied.

    Attributes:
        first, end: Their upstream offsets, `end` not included.
    """

    owned: OwnedPartition
    first: int
    end: int
    records: int
    reason: str

    @classmethod
    def of(cls, owned: OwnedPartition, run: RecordRun, refused: RefusedRecords) -> "Dropped":
        """Return the refused records of a run."""
        offsets = run.decoded().offsets
        return cls(
            owned=owned,
            first=offsets[refused.start],
            end=offsets[refused.stop - 1] + 1,
            records=refused.stop - refused.start,
            reason=f"{refused.code}: {refused.reason}",
        )


class DropNotes:
    """
    Notes and counts dropped records. In quarantine mode they are copied to a topic of their own.

    Attributes:
        records: Records that were noted.
    """

    def __init__(self, context: TaskContext, ledger: Ledger, *, quarantine: str | None) -> None:
        """
        Args:
            quarantine: The topic that holds the records; None: they are lost.
        """
        self._context = context
        self._ledger = ledger
        self._quarantine = quarantine
        self._noted: list[dict[str, object]] = []
        self.records = 0

    def note(self, some: Sequence[Dropped]) -> None:
        """Write ledger entries. Call it before the positions are committed: none may be missing."""
        if not some:
            return
        kind, more = Kind.DROP, {}
        if self._quarantine is not None:
            kind, more = Kind.QUARANTINE, {"topic": self._quarantine}
        noted = [
            {
                "partition": str(one.owned.source),
                "from": one.first,
                "to": one.end,
                "records": one.records,
                "reason": one.reason,
                **more,
            }
            for one in some
        ]
        ids = [{"task": self._context.slot, "topic_id": one.owned.topic_id} for one in some]
        with self._context.watch("ledger", FLUSH_BUDGET + WATCH_MARGIN):
            self._ledger.append_all(kind, [{**a, **b} for a, b in zip(ids, noted, strict=True)])
        self._noted += noted
        self.records += sum(one.records for one in some)

    def committed(self) -> None:
        """Report what was noted since the last call: the positions after it are committed."""
        noted, self._noted = self._noted, []
        for fields in noted:
            self._context.event(DROPPED if self._quarantine is None else QUARANTINED, fields)
