"""Turns the rounds of a contest into tables of medians, ranges and ratios."""

import os
import platform
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import nan
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.steady import spread

Rounds = Sequence[Mapping[str, Any]]
Results = Mapping[str, Mapping[str, Rounds]]


class Column(NamedTuple):
    """
    A column of a table.

    Attributes:
        path: Keys that lead to the figure in a round.
        factor: Converts its unit to that of the title.
        better: Which figures are better; None if neither larger nor smaller ones are.
    """

    title: str
    path: tuple[str, ...]
    factor: float = 1.0
    form: str = ".2f"
    better: Callable[[float, float], float] | None = min


COPY = (
    Column("k rec/s", ("rate",), 1e-3, ".0f", max),
    Column("tail k rec/s", ("tail_rate",), 1e-3, ".0f", max),
    Column("CPU", ("cpu_s", "mirror")),
    Column("tail CPU", ("tail_cpu_s", "mirror")),
    Column("source CPU", ("cpu_s", "source")),
    Column("target CPU", ("cpu_s", "target")),
    Column("RSS MB", ("rss_mb",), form=".0f"),
    Column("task MB", ("task_rss_mb",), form=".0f"),
    Column("first s", ("first_s",)),
    Column("records/tx", ("per_transaction",), form=".0f", better=None),
)
DELAY = (
    Column("p50 ms", ("p50_ms",), form=".1f"),
    Column("p90 ms", ("p90_ms",), form=".1f"),
    Column("p99 ms", ("p99_ms",), form=".1f"),
    Column("p99.9 ms", ("p999_ms",), form=".1f"),
    Column("mirror %", ("mirror_core",), 100, ".1f"),
    Column("target %", ("target_core",), 100, ".1f"),
    Column("seen rec/s", ("seen_rate",), form=".0f", better=None),
)
MANY = (
    Column("all s", ("all_s",)),
    Column("CPU s", ("all_cpu_s",)),
    Column("mirror %", ("cores", "mirror"), 100, ".1f"),
    Column("source %", ("cores", "source"), 100, ".1f"),
    Column("target %", ("cores", "target"), 100, ".1f"),
    Column("RSS MB", ("rss_mb",), form=".0f"),
)
FIRST = (
    Column("first s", ("first_start_s",)),
    Column("CPU s", ("first_start_cpu_s",)),
    Column("again s", ("again_s",)),
    Column("again CPU s", ("again_cpu_s",)),
)
KILL = (
    Column("next s", ("next_s",)),
    Column("caught up s", ("near_s",)),
    Column("records", ("records",), form=".0f", better=None),
)

COPY_LEGEND = (
    "k rec/s and CPU: in the steady state, which excludes the first 20 % of the records. tail: the "
    "same without the first half of the records, but at least one second. CPU: seconds per million "
    "records, of all processes of the mirror and of each broker. RSS: sum of the peaks of all "
    "processes; task: the peak of the largest process that copies, without that of the driver. "
    "first: from exec to the first record that a read_committed reader sees. "
    "records/tx: over all partitions; 0 without transactions. Every copy was verified."
)
DELAY_LEGEND = (
    "ms: from the timestamp of a record to a read_committed reader of the copy. %: of one core, "
    "for all processes of the mirror and for the target broker. seen: records a second that the "
    "reader got; if it is less than the load, the peer did not keep up."
)
MANY_LEGEND = (
    "all: from exec until a record of every partition is copied, and the CPU seconds that the "
    "mirror needs for it. %: of one core, afterwards. RSS: sum of the peaks of all processes."
)
KILL_LEGEND = (
    "Every process of the mirror gets SIGKILL, and the mirror is started again immediately. next: "
    "from then until a read_committed reader gets the next record. caught up: until that reader "
    "lags less than a second. No record is missing or duplicated: every copy was verified."
)
FIRST_LEGEND = (
    "first: from exec of a new flow to the first record that a read_committed reader gets, and the "
    "CPU seconds of all processes of the mirror until then. again: the same for a second start of "
    "the flow, after it was stopped and one more record was produced."
)
LEGENDS = {
    COPY: COPY_LEGEND,
    DELAY: DELAY_LEGEND,
    MANY: MANY_LEGEND,
    FIRST: FIRST_LEGEND,
    KILL: KILL_LEGEND,
}


def columns_of(of_cell: Mapping[str, Rounds]) -> tuple[Column, ...]:
    """Return the columns of the table for these rounds."""
    (some, *_), *_ = of_cell.values()
    return next(columns for columns in LEGENDS if columns[0].path[0] in some)


def figure(one: Mapping[str, Any], column: Column) -> float:
    """Return the figure of one round in the unit of the column's title; NaN if it has none."""
    found: Any = one
    for name in column.path:
        found = found.get(name, nan) if isinstance(found, Mapping) else nan
    return float(found) * column.factor


def table(of_cell: Mapping[str, Rounds]) -> Iterator[str]:
    """Yield the Markdown table of one cell: a row for each peer."""
    columns = columns_of(of_cell)
    yield from head("peer", columns)
    for peer, rounds in of_cell.items():
        yield row(peer, (spread([figure(one, c) for one in rounds], c.form) for c in columns))


def ratios(of_cell: Mapping[str, Rounds]) -> Iterator[str]:
    """Yield a Markdown table of the first peer over each other one, round by round."""
    columns = columns_of(of_cell)
    first, *others = of_cell
    yield from head(f"{first} /", columns)
    for other in others:
        pairs = list(zip(of_cell[first], of_cell[other], strict=True))
        yield row(
            other,
            (
                spread([over(figure(ours, c), figure(theirs, c)) for ours, theirs in pairs], ".2f")
                for c in columns
            ),
        )


def failures(of_cell: Mapping[str, Rounds]) -> Iterator[str]:
    """Yield a line for each peer that failed in a round and ran once more."""
    for peer, rounds in of_cell.items():
        if failed := sum(one.get("failures", 0) for one in rounds):
            yield ""
            yield f"{peer} failed in {failed} of {len(rounds)} rounds, and ran once more."


def over(ours: float, theirs: float) -> float:
    """Return the ratio, or NaN if there is nothing to compare with."""
    return ours / theirs if theirs else nan


def comparison(old: Results, new: Results) -> Iterator[str]:
    """Yield tables of new medians over old ones, for the peers that both results have."""
    for cell, of_cell in new.items():
        both = [peer for peer in of_cell if peer in old.get(cell, {})]
        columns = columns_of(of_cell)
        if not both or columns_of(old[cell]) != columns:
            continue
        yield from ("", f"## {cell}, new / old", "")
        yield from head("peer", columns)
        for peer in both:
            after, before = (
                [median(figure(one, c) for one in rounds) for c in columns]
                for rounds in (of_cell[peer], old[cell][peer])
            )
            yield row(peer, (f"{over(*pair):.2f}" for pair in zip(after, before, strict=True)))


def head(first: str, columns: Sequence[Column]) -> Iterator[str]:
    """Yield the first two lines of a table."""
    yield row(first, (column.title for column in columns))
    yield "|---|" + "---|" * len(columns)


def row(first: str, cells: Iterable[str]) -> str:
    """Return a line of a table."""
    return "| " + " | ".join((first, *cells)) + " |"


def rounds_line(count: int) -> str:
    """Say of how many rounds a figure is."""
    return f"Median (range) of {count} rounds." if count > 1 else "One round."


def machine() -> str:
    """Describe the machine and the Python build."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()} {_python_build()}; both brokers on the same cores"
    )


def _python_build() -> str:
    """
    Say whether Python was built with optimizations, which saves a tenth of the CPU time.

    Debian builds with optimizations, but does not declare it.
    """
    if sys.base_prefix == "/usr":
        return "of the system"
    said = str(sysconfig.get_config_var("CONFIG_ARGS"))
    return "with optimizations" if "--enable-optimizations" in said else "without optimizations"
