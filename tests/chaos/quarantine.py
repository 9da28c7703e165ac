"""What the quarantine has at the end of a run."""

from collections.abc import Iterator, Mapping, Sequence

from eos_mirror.core.quarantine import QuarantinedRecord, decode_quarantined
from eos_mirror.core.records import TopicPartition, TopicRecord
from eos_mirror.testing import Record, read_topic
from tests.chaos.site import FLOW, SOURCES

Moved = Mapping[TopicPartition, Mapping[int, Sequence[QuarantinedRecord]]]
"""Quarantined records by source partition and upstream offset; one each, or something is wrong."""

NOTHING: Moved = {one: {} for one in SOURCES}


def read_quarantine(cluster: Mapping[str, str]) -> Moved:
    """Return what the quarantine has."""
    found: dict[TopicPartition, dict[int, list[QuarantinedRecord]]] = {one: {} for one in SOURCES}
    for record in read_topic(cluster, FLOW.quarantine_topic)[0]:
        one = decode_quarantined(TopicRecord(record.key, record.value, list(record.headers)))
        if one.source in found:  # the doomed topic is not compared
            found[one.source].setdefault(one.offset, []).append(one)
    return found


def without(source: Sequence[Record], moved: Mapping[int, object]) -> list[Record]:
    """Return the records that belong into the copy."""
    return [record for record in source if record.offset not in moved]


def check_quarantined(
    source: Sequence[Record], moved: Mapping[int, Sequence[QuarantinedRecord]]
) -> Iterator[str]:
    """Yield a complaint for each record that is there twice, altered, or not of the source."""
    originals = {record.offset: record for record in source}
    for offset, found in moved.items():
        if len(found) > 1:
            yield f"offset {offset} is in the quarantine {len(found)} times"
        original, one = originals.get(offset), found[0]
        if original is None:
            yield f"offset {offset} is in the quarantine, and no record of the source"
            continue
        theirs = (original.key, original.value, list(original.headers), original.timestamp[1])
        if theirs != (one.key, one.value, one.headers or [], one.timestamp):
            yield f"offset {offset} is altered in the quarantine"
