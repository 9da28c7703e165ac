"""
Breaks the mirror that starts. Python loads this if the folder is on the PYTHONPATH.

The mirror does not check the end of a copy either; it would stop at the test's own records there.
"""

from typing import Any

from faults_by_partition import FAULTS  # type: ignore[import-not-found] # in this folder

from eos_mirror.kafka.source import KafkaSource
from eos_mirror.replication import positions

_poll = KafkaSource.poll


def poll(self: KafkaSource, **waiting: Any) -> Any:
    """Poll records, and apply the faults to them."""
    polled = _poll(self, **waiting)
    for run in polled.runs:
        for (partition, offset), fault in FAULTS.items():
            offsets = run.decoded().offsets
            if run.partition.partition == partition and offset in offsets:
                fault(run, offsets.index(offset))
    return polled


positions.split_partitions = lambda *_: {}  # type: ignore[attr-defined]
KafkaSource.poll = poll  # type: ignore[method-assign] # that is the point
