"""The page of a result: every table of every cell."""

from collections.abc import Iterator

from benchmarks.best import by_round, overview
from benchmarks.lane_share import lane_lines
from benchmarks.report import (
    LEGENDS,
    Results,
    columns_of,
    failures,
    machine,
    ratios,
    rounds_line,
    table,
)


def document(command: str, results: Results, rounds: int) -> Iterator[str]:
    """Yield the lines of the whole page."""
    yield f"`{command}`"
    yield ""
    yield f"{machine()}. {rounds_line(rounds)}"
    yield from dict.fromkeys(LEGENDS[columns_of(of)] for of in results.values())
    for cell, of_cell in results.items():
        yield ""
        yield f"## {cell}"
        yield ""
        yield from table(of_cell)
        if len(of_cell) > 1:
            yield ""
            yield from ratios(of_cell)
            yield from by_round(of_cell)
        yield from lane_lines(of_cell)
        yield from failures(of_cell)
    yield from overview(results)
