"""
Ratios to MirrorMaker 2's best mode, for each figure and each round.

The best mode for a figure is the one with the best median, so that every round is compared with
the same mode. The ratio of a round divides figures of the same round.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from statistics import median

from benchmarks.peers import PEERS
from benchmarks.report import Column, Results, Rounds, columns_of, figure, head, over, row
from benchmarks.steady import spread


def best_mode(of_cell: Mapping[str, Rounds], column: Column) -> str | None:
    """Return the mode of MirrorMaker 2 with the best median; None if no mode has the figure."""
    medians = {
        name: median(figure(one, column) for one in rounds)
        for name, rounds in of_cell.items()
        if PEERS[name].is_mirror_maker
    }
    known = {name: value for name, value in medians.items() if not isnan(value)}
    if not known or column.better is None:
        return None
    wanted = known.values()
    best = max(wanted) if column.better is max else min(wanted)
    return next(name for name, value in known.items() if value == best)


def round_ratios(ours: Rounds, theirs: Rounds, column: Column) -> Sequence[float]:
    """Return the ratio of each round."""
    pairs = zip(ours, theirs, strict=True)
    return [over(figure(one, column), figure(other, column)) for one, other in pairs]


def by_round(of_cell: Mapping[str, Rounds]) -> Iterator[str]:
    """Yield a table of the ratios of every round; nothing without MirrorMaker 2."""
    lines = [
        _line(of_cell, ours, column)
        for ours in of_cell
        if PEERS[ours].data_path is not None
        for column in columns_of(of_cell)
        if best_mode(of_cell, column) is not None
    ]
    if lines:
        titles = ("to its best mode", "median (range)", "every round")
        yield from ("", row("figure", titles), "|---|" + "---|" * len(titles), *lines)


def _line(of_cell: Mapping[str, Rounds], ours: str, column: Column) -> str:
    theirs = best_mode(of_cell, column) or ""
    found = round_ratios(of_cell[ours], of_cell[theirs], column)
    every = " ".join(f"{one:.2f}" for one in found)
    return row(f"{ours}: {column.title}", (theirs, shown(found), every))


def shown(found: Sequence[float]) -> str:
    """Return median and range of ratios; small ones with three digits."""
    return spread(found, ".3f" if median(found) < 0.1 else ".2f")


def overview(results: Results) -> Iterator[str]:
    """Yield one line per cell and peer of ours; nothing for one cell or without MirrorMaker 2."""
    cells = [of for of in results.values() if any(PEERS[name].is_mirror_maker for name in of)]
    columns = {columns_of(of) for of in cells}
    if len(cells) < 2 or len(columns) != 1:
        return
    (all_columns,) = columns
    some = [column for column in all_columns if column.better is not None]
    yield from ("", "## All cells, to MirrorMaker 2's best mode for each figure", "")
    yield from head("cell", some)
    for cell, of_cell in results.items():
        for ours, rounds in of_cell.items():
            if PEERS[ours].data_path is not None:
                yield row(f"{cell}: {ours}", _cells(of_cell, rounds, some))


def _cells(
    of_cell: Mapping[str, Rounds], rounds: Rounds, columns: Sequence[Column]
) -> Iterator[str]:
    for column in columns:
        theirs = best_mode(of_cell, column)
        yield shown(round_ratios(rounds, of_cell[theirs], column)) if theirs else ""
