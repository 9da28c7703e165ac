"""What the quarantine has at the end of a run."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from eos_mirror.core.quarantine import QuarantinedRecord, decode_quarantined
from eos_mirror.core.records import TopicPartition, TopicRecord
from eos_mirror.testing import Record, read_topic
from tests.chaos.site import FLOW, SOURCES

Moved = Mapping[TopicPartition, Mapping[int, Sequence[QuarantinedRecord]]]
"""Quarantined records by source partition and upstream offset: the copies of one record."""

Copies = Callable[[str, Record], Sequence[Record]]
"""Returns the copies of a record of a topic."""

NOTHING: Moved = {one: {} for one in SOURCES}


def read_quarantine(cluster: Mapping[str, str]) -> Moved:
    """Return what the quarantine has."""
    found: dict[TopicPartition, dict[int, list[QuarantinedRecord]]] = {one: {} for one in SOURCES}
    for record in read_topic(cluster, FLOW.quarantine_topic)[0]:
        one = decode_quarantined(TopicRecord(record.key, record.value, list(record.headers)))
        if one.source in found:  # the doomed topic is not compared
            found[one.source].setdefault(one.offset, []).append(one)
    return found


def one_copy(_: str, record: Record) -> list[Record]:
    """Return the record: what is mirrored without a message handler."""
    return [record]


def without(
    source: Sequence[Record], moved: Mapping[int, object], topic: str, copies: Copies
) -> list[Record]:
    """Return the copies of the records that are not in the quarantine."""
    left = (record for record in source if record.offset not in moved)
    return [copy for record in left for copy in copies(topic, record)]


def check_quarantined(
    source: Sequence[Record],
    moved: Mapping[int, Sequence[QuarantinedRecord]],
    topic: str,
    copies: Copies,
) -> Iterator[str]:
    """Yield a complaint for each record that is there twice, altered, or not of the source."""
    originals = {record.offset: record for record in source}
    for offset, found in moved.items():
        original = originals.get(offset)
        if original is None:
            yield f"offset {offset} is in the quarantine, and no record of the source"
            continue
        wanted = [
            (one.key, one.value, list(one.headers), one.timestamp[1])
            for one in copies(topic, original)
        ]
        if [(one.key, one.value, one.headers or [], one.timestamp) for one in found] != wanted:
            yield f"offset {offset} is twice or altered in the quarantine"
