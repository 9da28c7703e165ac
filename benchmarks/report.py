"""From the rounds of a contest to a table: medians, and ranges of the ratios."""

import os
import platform
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from math import nan
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.steady import spread

Rounds = Sequence[Mapping[str, Any]]
Results = Mapping[str, Mapping[str, Rounds]]


class Column(NamedTuple):
    """
    Of a table.

    Attributes:
        path: Where the figure is in a round.
        factor: From its unit to that of the title.
    """

    title: str
    path: tuple[str, ...]
    factor: float = 1.0
    form: str = ".2f"


COPY = (
    Column("k rec/s", ("rate",), 1e-3, ".0f"),
    Column("tail", ("tail_rate",), 1e-3, ".0f"),
    Column("CPU", ("cpu_s", "mirror")),
    Column("tail", ("tail_cpu_s", "mirror")),
    Column("source", ("cpu_s", "source")),
    Column("target", ("cpu_s", "target")),
    Column("RSS MB", ("rss_mb",), form=".0f"),
    Column("first s", ("first_s",)),
    Column("records/tx", ("per_transaction",), form=".0f"),
)
DELAY = (
    Column("p50 ms", ("p50_ms",), form=".1f"),
    Column("p90 ms", ("p90_ms",), form=".1f"),
    Column("p99 ms", ("p99_ms",), form=".1f"),
    Column("p99.9 ms", ("p999_ms",), form=".1f"),
    Column("mirror %", ("mirror_core",), 100, ".1f"),
    Column("target %", ("target_core",), 100, ".1f"),
    Column("seen rec/s", ("seen_rate",), form=".0f"),
)
MANY = (
    Column("all s", ("all_s",)),
    Column("CPU s", ("all_cpu_s",)),
    Column("mirror %", ("cores", "mirror"), 100, ".1f"),
    Column("source %", ("cores", "source"), 100, ".1f"),
    Column("target %", ("cores", "target"), 100, ".1f"),
    Column("RSS MB", ("rss_mb",), form=".0f"),
)
KILL = (
    Column("next s", ("next_s",)),
    Column("caught up s", ("near_s",)),
    Column("records", ("records",), form=".0f"),
)

COPY_LEGEND = (
    "k rec/s and CPU: of the steady state, without the first 20 % of the records; tail: without "
    "the first half, but a second at least. CPU: seconds per million records, of the mirror with "
    "all its processes and of each broker. RSS: highest of each process, summed. first: from exec "
    "to the first record that a read_committed reader sees. records/tx: of all partitions; without "
    "transactions 0. Every copy verified."
)
DELAY_LEGEND = (
    "ms: from the timestamp of a record to a read_committed reader of the copy. %: of one core, "
    "of the mirror with all its processes and of the target broker. seen: by that reader; with "
    "less than the load, the peer did not keep up."
)
MANY_LEGEND = (
    "all: from exec until a record of every partition is copied, and the CPU seconds of the mirror "
    "for it. %: of one core, then. RSS: highest of each process, summed."
)
KILL_LEGEND = (
    "From SIGKILL of every process of the mirror, and a new start at once, until a read_committed "
    "reader gets the next record, and until it is less than a second behind the load. Nothing "
    "missing, nothing twice: every copy verified."
)
LEGENDS = {COPY: COPY_LEGEND, DELAY: DELAY_LEGEND, MANY: MANY_LEGEND, KILL: KILL_LEGEND}


def columns_of(of_cell: Mapping[str, Rounds]) -> tuple[Column, ...]:
    """What was measured."""
    (some, *_), *_ = of_cell.values()
    return next(columns for columns in LEGENDS if columns[0].path[0] in some)


def figure(one: Mapping[str, Any], column: Column) -> float:
    """Of one round, in the unit of the title."""
    found: Any = one
    for name in column.path:
        found = found[name]
    return float(found) * column.factor


def table(of_cell: Mapping[str, Rounds]) -> Iterator[str]:
    """One cell: a row for each peer, as Markdown."""
    columns = columns_of(of_cell)
    yield from _head("peer", columns)
    for peer, rounds in of_cell.items():
        yield _row(peer, (spread([figure(one, c) for one in rounds], c.form) for c in columns))


def ratios(of_cell: Mapping[str, Rounds]) -> Iterator[str]:
    """The first peer over each other one, round by round, as Markdown."""
    columns = columns_of(of_cell)
    first, *others = of_cell
    yield from _head(f"{first} /", columns)
    for other in others:
        pairs = list(zip(of_cell[first], of_cell[other], strict=True))
        yield _row(
            other,
            (
                spread([over(figure(ours, c), figure(theirs, c)) for ours, theirs in pairs], ".2f")
                for c in columns
            ),
        )


def failures(of_cell: Mapping[str, Rounds]) -> Iterator[str]:
    """Who failed in a round, and ran once more."""
    for peer, rounds in of_cell.items():
        if failed := sum(one.get("failures", 0) for one in rounds):
            yield ""
            yield f"{peer} failed in {failed} of {len(rounds)} rounds, and ran once more."


def over(ours: float, theirs: float) -> float:
    """A ratio; not a number where there is nothing to compare with."""
    return ours / theirs if theirs else nan


def comparison(old: Results, new: Results) -> Iterator[str]:
    """The medians of a new result over those of an old one, where both have the same peer."""
    for cell, of_cell in new.items():
        both = [peer for peer in of_cell if peer in old.get(cell, {})]
        columns = columns_of(of_cell)
        if not both or columns_of(old[cell]) != columns:
            continue
        yield from ("", f"## {cell}, new / old", "")
        yield from _head("peer", columns)
        for peer in both:
            after, before = (
                [median(figure(one, c) for one in rounds) for c in columns]
                for rounds in (of_cell[peer], old[cell][peer])
            )
            yield _row(peer, (f"{over(*pair):.2f}" for pair in zip(after, before, strict=True)))


def _head(first: str, columns: Sequence[Column]) -> Iterator[str]:
    yield _row(first, (column.title for column in columns))
    yield "|---|" + "---|" * len(columns)


def _row(first: str, cells: Iterator[str]) -> str:
    return "| " + " | ".join((first, *cells)) + " |"


def document(command: str, results: Results, rounds: int) -> Iterator[str]:
    """The whole page."""
    yield f"`{command}`"
    yield ""
    yield f"{machine()}. {_rounds(rounds)}"
    yield from dict.fromkeys(LEGENDS[columns_of(of)] for of in results.values())
    for cell, of_cell in results.items():
        yield ""
        yield f"## {cell}"
        yield ""
        yield from table(of_cell)
        if len(of_cell) > 1:
            yield ""
            yield from ratios(of_cell)
        yield from failures(of_cell)


def _rounds(count: int) -> str:
    return f"Median (range) of {count} rounds." if count > 1 else "One round."


def machine() -> str:
    """What it ran on."""
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
    """It is worth a tenth of the CPU. Debian does not say that it optimises, but does."""
    if sys.base_prefix == "/usr":
        return "of the system"
    said = str(sysconfig.get_config_var("CONFIG_ARGS"))
    return "with optimizations" if "--enable-optimizations" in said else "without optimizations"
