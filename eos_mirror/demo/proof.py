"""
The proof: compares what Kafka's own console consumer prints for both topics.

The console consumer shares no code with the mirror or its client library. It reads read_committed
and prints partition, timestamp, headers, key and value of each record on one line.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from eos_mirror.errors import MirrorError
from eos_mirror.testing.checker import (
    Comparison,
    PartitionComparison,
    Record,
    compare_partition,
)
from eos_mirror.testing.external import Cluster

NULL: Final = "<null>"
FIELDS: Final = 5
PATIENCE: Final = (timedelta(seconds=4), timedelta(seconds=20))
"""The console consumer exits after this time without a record. On a busy machine that may be too
early. If fewer records than were written are read, they are read again with the second value."""
LONGEST: Final = timedelta(seconds=120)

PRINTED: Final = (
    "print.timestamp=true",
    "print.partition=true",
    "print.headers=true",
    "print.key=true",
    "key.separator=\t",
    f"null.literal={NULL}",
)

Lines = Mapping[int, Sequence[str]]
"""Printed lines by partition, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """
    Both topics as Kafka's console consumer read them.

    Attributes:
        written: Records that producers committed to the source, by partition.
        read: Records read from the source, by partition.
    """

    comparison: Comparison
    written: Mapping[int, int]
    read: Mapping[int, int]

    @property
    def holds(self) -> bool:
        """Return whether the target equals the source, and the source what was written."""
        return self.comparison.exact and dict(self.written) == dict(self.read)

    def doubts(self) -> list[str]:
        """Return one line for each difference."""
        lines = [] if self.comparison.exact else str(self.comparison).splitlines()
        return lines + [
            f"partition {number}: {self.written.get(number, 0)} records committed, "
            f"{self.read.get(number, 0)} read from the source"
            for number in sorted({*self.written, *self.read})
            if self.written.get(number, 0) != self.read.get(number, 0)
        ]


def prove(
    source: tuple[Cluster, str],
    target: tuple[Cluster, str],
    *,
    written: Mapping[int, int],
    folder: Path,
) -> Proof:
    """
    Read both sides at the same time and compare them.

    Args:
        source: Cluster and topic of the source; `target` has those of the target.
        written: Records committed to the source, by partition.
        folder: Folder for the printed records, `source.txt` and `target.txt`.

    Raises:
        MirrorError: The console consumer failed.
        TimeoutError: The console consumer did not exit.
    """
    expected = sum(written.values())
    with ThreadPoolExecutor(2) as readers:
        reading = [
            readers.submit(_read, *side, expected, folder / name)
            for side, name in ((source, "source.txt"), (target, "target.txt"))
        ]
    before, after = (by_partition(side.result()) for side in reading)
    return Proof(
        comparison=compare(before, after),
        written=written,
        read={number: len(lines) for number, lines in before.items()},
    )


def by_partition(printed: str) -> Lines:
    """
    Group printed records by partition.

    Raises:
        MirrorError: A line is not a record.
    """
    found: defaultdict[int, list[str]] = defaultdict(list)
    for line in printed.split("\n"):
        if not line:
            continue
        _, _, rest = line.partition("\tPartition:")
        number = rest.partition("\t")[0]
        if not number.isdigit():
            raise MirrorError(f"not a printed record: {line[:100]!r}")
        found[int(number)].append(line)
    return found


def compare(source: Lines, target: Lines) -> Comparison:
    """Compare printed records, partition by partition, in order, all fields."""
    return Comparison(
        partitions={
            number: _compare(source.get(number, ()), target.get(number, ()))
            for number in sorted({*source, *target})
        }
    )


def parse(line: str) -> Record:
    """
    Parse a printed record.

    Raises:
        MirrorError: The line is not a printed record.
    """
    parts = line.split("\t")
    if len(parts) != FIELDS:
        raise MirrorError(f"not a printed record: {line[:100]!r}")
    timestamp, _, headers, key, value = parts
    pairs = () if headers == "NO_HEADERS" else tuple(headers.split(","))
    kind, _, at_ms = timestamp.rpartition(":")
    return Record(
        key=_bytes(key),
        value=_bytes(value),
        headers=tuple((name, _bytes(text)) for name, _, text in (p.partition(":") for p in pairs)),
        timestamp=(1 if kind == "CreateTime" else 2, int(at_ms)),
    )


def _compare(source: Sequence[str], target: Sequence[str]) -> PartitionComparison:
    if source == target:
        return PartitionComparison(matched=len(source))
    return compare_partition([parse(line) for line in source], [parse(line) for line in target])


def _bytes(text: str) -> bytes | None:
    return None if text == NULL else text.encode()


def _read(cluster: Cluster, topic: str, expected: int, path: Path) -> str:
    printed = ""
    for patience in PATIENCE:
        printed = _console_consumer(cluster, topic, patience)
        if printed.count("\n") >= expected:
            break
    path.write_text(printed, encoding="utf-8")
    return printed


def _console_consumer(cluster: Cluster, topic: str, patience: timedelta) -> str:
    options = [word for text in PRINTED for word in ("--formatter-property", text)]
    done = cluster.tool(
        "ConsoleConsumer",
        *("--topic", topic, "--from-beginning", "--isolation-level", "read_committed"),
        *("--timeout-ms", str(patience // timedelta(milliseconds=1))),
        *options,
        timeout=LONGEST,
    )
    if "Processed a total of" not in done.stderr:
        raise MirrorError(f"Kafka's console consumer failed on {topic}: {done.stderr.strip()}")
    return done.stdout
