"""
The promises that must hold at the end: each function turns the data that was read into complaints.

A promise holds if there is no complaint. Nothing here connects to a cluster.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from eos_mirror.core.map_segment import Segment
from eos_mirror.core.offset_map import OffsetMap, Untranslatable
from eos_mirror.core.records import TopicPartition
from eos_mirror.ports import PartitionEnd
from eos_mirror.testing import PartitionComparison, Record

SHOWN = 3
Pair = tuple[int, int]
"""Upstream and downstream offset of one record."""

DECIDED = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})
"""States of a transactional id without an open transaction."""


def check_compacted(
    written: Sequence[Record], source: Sequence[Record], target: Sequence[Record]
) -> list[str]:
    """
    Check the copy of a compacted partition.

    It must be in the order of writing, without duplicated or foreign records, and have every record
    that the source still has.
    """
    place = {record: n for n, record in enumerate(written)}
    complaints, furthest = [], -1
    for record in target:
        at = place.get(record)
        if at is None:
            complaints.append(f"offset {record.offset} was never written")
        elif at <= furthest:
            complaints.append(f"offset {record.offset} is record {at}, after record {furthest}")
        furthest = max(furthest, -1 if at is None else at)
    copied = set(target)
    complaints += [f"record {place.get(r)} is missing" for r in source if r not in copied]
    return complaints


def check_repeated(compared: PartitionComparison) -> list[str]:
    """
    Check the copy of a partition for at least once.

    No record may be missing, altered or foreign, and the first copies must be in order.
    """
    faults = {
        "missing": compared.missing,
        "reordered": compared.reordered,
        "altered": compared.altered,
        "foreign": compared.foreign,
    }
    return [f"{n} records {what}: {compared.first_difference}" for what, n in faults.items() if n]


def check_repeated_compacted(
    written: Sequence[Record], source: Sequence[Record], target: Sequence[Record]
) -> list[str]:
    """
    Check the copy of a compacted partition for at least once.

    It must have no foreign record, and every record that the source still has.
    """
    known, copied = set(written), set(target)
    return [
        *(f"offset {r.offset} was never written" for r in target if r not in known),
        *(f"{r} is missing" for r in source if r not in copied),
    ]


def check_bound(duplicates: int, senders: int, batch: int) -> list[str]:
    """Check, for at least once, that the successor of each sender repeats at most one batch."""
    allowed = senders * batch
    return [f"{duplicates} duplicates, of {allowed} that are explained"] * (duplicates > allowed)


def check_witness(seen: Sequence[Record], final: Sequence[Record]) -> list[str]:
    """Check that a reader from the start saw exactly the final records: none has been removed."""
    for n, (early, late) in enumerate(zip(seen, final, strict=False)):
        if early != late or early.offset != late.offset:
            return [f"record {n}: seen at {early.offset} {early}, finally at {late.offset} {late}"]
    if len(seen) != len(final):
        return [f"{len(seen)} records seen, {len(final)} there at the end"]
    return []


def check_positions(
    positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> list[str]:
    """Check that, after the drain, the committed position is the end of the source partition."""
    return [
        f"{one}: position {positions.get(one)}, end {end}"
        for one, end in ends.items()
        if positions.get(one) != end
    ]


def check_translation(offsets: OffsetMap, pairs: Sequence[Pair], end: int) -> list[str]:
    """
    Check the translation of every offset, in both directions, against brute force.

    Args:
        pairs: Offsets of every mirrored record, in order.
        end: End of the source partition.
    """
    upstream = [pair[0] for pair in pairs]
    downstream = [pair[1] for pair in pairs]
    behind = downstream[-1] + 1 if pairs else offsets.downstream_end
    complaints = []
    for asked in range(end + 1):
        n = bisect_left(upstream, asked)
        wanted = downstream[n] if n < len(pairs) else behind
        if offsets.translate(asked) != wanted:
            complaints.append(f"translate({asked}) = {offsets.translate(asked)}, not {wanted}")
    for asked in range((behind or 0) + 1):
        n = bisect_left(downstream, asked)
        wanted = upstream[n] if n < len(pairs) else end
        if offsets.reverse(asked) != wanted:
            complaints.append(f"reverse({asked}) = {offsets.reverse(asked)}, not {wanted}")
    if not isinstance(offsets.translate(end + 1), Untranslatable):
        complaints.append(f"translate({end + 1}) guesses beyond the end")
    return complaints


def check_chain(segments: Sequence[Segment]) -> list[str]:
    """Check that each segment of the map starts where the previous one ended, on both sides."""
    complaints = []
    if segments and segments[0].number != 0:
        complaints.append(f"the map begins with segment {segments[0].number}")
    for before, after in pairwise(segments):
        if after.number != before.number + 1:
            complaints.append(f"segment {before.number} is followed by {after.number}")
        if after.upstream_start != before.upstream_end:
            complaints.append(
                f"segment {after.number} starts at {after.upstream_start}, "
                f"{before.number} ends at {before.upstream_end}"
            )
        if after.downstream_start != before.downstream_end:
            complaints.append(
                f"segment {after.number} starts downstream at {after.downstream_start}, "
                f"{before.number} ends at {before.downstream_end}"
            )
    runs = [run for segment in segments for run in segment.runs]
    complaints += [
        f"run {after} overlaps {before}"
        for before, after in pairwise(runs)
        if after.upstream < before.upstream_end or after.downstream < before.downstream_end
    ]
    return complaints


def check_leftovers(
    claims: Iterable[str],
    transactions: Mapping[str, str],
    ends: Mapping[TopicPartition, PartitionEnd],
    *,
    processes: Sequence[int] = (),
) -> list[str]:
    """
    Check that a graceful stop leaves nothing over.

    Args:
        claims: Keys of live claims.
        transactions: State of every transactional id of the flow.
        ends: Ends of every partition that the flow writes.
        processes: Process ids of tasks that are still running.
    """
    return [
        *(f"live claim {key}" for key in claims),
        *(f"{tid} is {state}" for tid, state in transactions.items() if state not in DECIDED),
        *(
            f"{one}: LSO {end.stable}, high watermark {end.written}"
            for one, end in ends.items()
            if end.stable != end.written
        ),
        *(f"task process {pid} is still running" for pid in processes),
    ]


def check_source(acknowledged: Iterable[int], there: Iterable[int]) -> list[str]:
    """Check that the source kept what it acknowledged; if not, the run proves nothing."""
    lost = sorted(set(acknowledged) - set(there))
    return [f"{len(lost)} acknowledged records are gone from the source: {lost[:SHOWN]}"] * bool(
        lost
    )


def check_aborted(aborted: Iterable[int], seen: Iterable[int]) -> list[str]:
    """Check that no reader has seen a record of an aborted transaction."""
    visible = sorted(set(aborted) & set(seen))
    return [f"{len(visible)} aborted records were read: {visible[:SHOWN]}"] * bool(visible)
