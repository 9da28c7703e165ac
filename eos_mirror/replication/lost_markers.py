"""
Checks that target readers see the records that a shadow offset counts, and none after them.

A transaction is atomic only if each of its markers is written. A target that loses some of them
(docs/guarantees.md, "Lost markers") leaves records without their offsets, or offsets without their
records. The next abort of the same producer makes that final: nothing is undecided any more.
"""

from collections.abc import Sequence

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import MarkersLost
from eos_mirror.ports import TargetReader
from eos_mirror.replication.partition import OwnedPartition

ADVICE = "`verify` names the records; docs/guarantees.md says what can be done."


def split_partitions(
    flow: Flow, resumed: Sequence[OwnedPartition], reader: TargetReader
) -> dict[TopicPartition, MarkersLost]:
    """
    Return partitions whose records and shadow offset do not match, by source partition.

    Args:
        resumed: Partitions read from their shadow offsets. Nothing writes to them, and every
            transaction in them is decided.

    Raises:
        RestartTask: The target did not answer.
    """
    seen = reader.first_offsets({one.remote: _last(one) for one in resumed}, committed=True)
    unseen = {
        one.remote: _last(one)
        for one in resumed
        if _has_records(one) and _last(one) not in seen[one.remote]
    }
    # retention or compaction may have deleted the last record: then no reader sees it
    aborted = reader.first_offsets(unseen, committed=False) if unseen else {}
    faults: dict[TopicPartition, MarkersLost] = {}
    for one in resumed:
        where = f"{flow} {one.source} next_offset={one.committed}"
        beyond = [offset for offset in seen[one.remote] if offset >= _end(one)]
        if beyond:
            faults[one.source] = MarkersLost(
                f"{where}: {one.remote} has committed records from {beyond[0]} on that the shadow "
                f"offset does not count: they would be doubled. The target lost a part of a "
                f"transaction, or someone else writes there. {ADVICE}"
            )
        elif _last(one) in aborted.get(one.remote, ()):
            faults[one.source] = MarkersLost(
                f"{where}: the shadow offset counts {one.remote} offset={_last(one)}, but that "
                f"record was aborted: the target lost a part of a transaction. {ADVICE}"
            )
    return faults


def _end(owned: OwnedPartition) -> int:
    return owned.tail.downstream_end or 0


def _last(owned: OwnedPartition) -> int:
    return max(_end(owned) - 1, 0)


def _has_records(owned: OwnedPartition) -> bool:
    """Return True if we wrote here. Until then, an adopted partition ends with others' records."""
    return bool(owned.tail.runs) or owned.tail.segment > 0
