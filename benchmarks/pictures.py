"""Pictures of a result as PNG and SVG; they accompany the page."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.labels import Copied, Many
from benchmarks.report import (
    COPY,
    DELAY,
    MANY,
    Column,
    Results,
    Rounds,
    columns_of,
    figure,
    over,
)

RATE, CPU = COPY[0], COPY[2]
BARS = {
    "rate": (RATE, "thousand records a second"),
    "cpu": (CPU, "CPU seconds of the mirror for a million records"),
}
"""Column and axis title of each picture, by name."""

OVER_PARTITIONS = (
    (MANY[0], "seconds until all are copied"),
    (MANY[2], "% of a core, mirror"),
    (MANY[4], "% of a core, target broker"),
)
OURS, OTHERS = "#1b7f5a", "#9aa3ad"
PERCENTILES = DELAY[:4]
SUFFIXES = (".svg", ".png")


def draw(folder: Path, document: Mapping[str, Any]) -> list[Path]:
    """
    Draw pictures of a file that `--json` wrote, and return their paths.

    Raises:
        RuntimeError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (of the extra `bench` only)
    except ImportError as exc:
        raise RuntimeError("pictures need matplotlib: pip install 'eos-mirror[bench]'") from exc
    written: list[Path] = []
    for name, picture in _pictures(Figure, document["results"]):
        for suffix in SUFFIXES:
            path = folder / f"{name}{suffix}"
            picture.savefig(path, dpi=150)
            written.append(path)
    return written


def _pictures(new: Any, results: Results) -> Iterator[tuple[str, Any]]:
    copies = {cell: of for cell, of in results.items() if columns_of(of) is COPY}
    delays = {load: of for load, of in results.items() if columns_of(of) is DELAY}
    for name, (column, title) in BARS.items() if copies else ():
        yield name, _bars(new, copies, column, title)
    if delays:
        yield "latency", _curves(new, delays)
    over_intervals, over_tasks = _by_interval(copies), _by_tasks(copies)
    if over_intervals:
        yield "intervals", _costs(new, over_intervals)
    if over_tasks:
        yield "tasks", _gains(new, over_tasks)
    many = {one.partitions: of for name, of in results.items() if (one := Many.parse(name))}
    if len(many) > 1:
        yield "partitions", _growth(new, many)


Sweep = Mapping[str, Mapping[int, Mapping[str, Rounds]]]
"""Rounds by the settings that stayed the same, then by the value that changed, then by peer."""


def _by_interval(copies: Results) -> Sweep:
    """Select the copies that were measured at more than one interval."""
    found: dict[str, dict[int, Mapping[str, Rounds]]] = {}
    for name, of_cell in copies.items():
        if one := Copied.parse(name):
            same = f"{one.cell}, tasks: {one.tasks}"
            found.setdefault(same, {})[one.interval_ms] = of_cell
    return {same: changed for same, changed in found.items() if len(changed) > 1}


def _by_tasks(copies: Results) -> Sweep:
    """Select the copies that were measured with more than one number of tasks."""
    found: dict[str, dict[int, Mapping[str, Rounds]]] = {}
    for name, of_cell in copies.items():
        if one := Copied.parse(name):
            found.setdefault(f"{one.cell}, {one.interval_ms} ms", {})[one.tasks] = of_cell
    return {same: changed for same, changed in found.items() if len(changed) > 1}


def _costs(new: Any, sweep: Sweep) -> Any:
    """Draw rate and CPU of the first peer over those of the second one, by commit interval."""
    picture = new(figsize=(8, 7), layout="constrained")
    axes = picture.subplots(2, 1, sharex=True)
    for axis, column, title in ((axes[0], RATE, "rate"), (axes[1], CPU, "CPU per record")):
        for same, changed in sweep.items():
            first, second, *_ = next(iter(changed.values()))
            spans = [_ratios(of[first], of[second], column) for of in changed.values()]
            middles = [median(one) for one in spans]
            (line,) = axis.plot(list(changed), middles, marker="o", label=same)
            lows, highs = [min(one) for one in spans], [max(one) for one in spans]
            axis.fill_between(list(changed), lows, highs, color=line.get_color(), alpha=0.15)
            axis.set_title(f"{title}, {first} over {second}", loc="left")
        axis.axhline(1, color="#333333", lw=0.8, ls=":")
        axis.set_xscale("log")
        _say_plainly(axis.xaxis)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    axes[-1].set_xlabel("commit interval, ms")
    return picture


def _ratios(ours: Rounds, theirs: Rounds, column: Column) -> list[float]:
    pairs = zip(ours, theirs, strict=True)
    return [over(figure(one, column), figure(other, column)) for one, other in pairs]


def _gains(new: Any, sweep: Sweep) -> Any:
    """Draw the rate of each peer by its number of tasks."""
    picture = new(figsize=(8, 1 + 3 * len(sweep)), layout="constrained")
    axes = picture.subplots(len(sweep), 1, squeeze=False)[:, 0]
    for axis, (same, changed) in zip(axes, sweep.items(), strict=True):
        _lines(axis, changed, RATE)
        axis.set_xticks(list(changed))
        axis.set_ylabel(BARS["rate"][1])
        axis.set_title(same, loc="left")
        axis.legend(frameon=False)
    axes[-1].set_xlabel("tasks")
    return picture


def _growth(new: Any, changed: Mapping[int, Mapping[str, Rounds]]) -> Any:
    """Draw the cost of each peer by the number of partitions."""
    picture = new(figsize=(8, 3 * len(OVER_PARTITIONS)), layout="constrained")
    axes = picture.subplots(len(OVER_PARTITIONS), 1, sharex=True)
    for axis, (column, title) in zip(axes, OVER_PARTITIONS, strict=True):
        _lines(axis, changed, column)
        axis.set_xscale("log")
        _say_plainly(axis.xaxis)
        axis.set_ylabel(title)
    axes[0].legend(frameon=False)
    axes[-1].set_xlabel("partitions")
    return picture


def _lines(axis: Any, changed: Mapping[int, Mapping[str, Rounds]], column: Column) -> None:
    for peer in next(iter(changed.values())):
        middles = [median(figure(one, column) for one in of[peer]) for of in changed.values()]
        axis.plot(list(changed), middles, marker="o", label=peer, lw=3 if _is_ours(peer) else 1.5)
    axis.set_ylim(0, 1.05 * axis.dataLim.ymax)
    axis.spines[["top", "right"]].set_visible(False)


def _say_plainly(axis: Any) -> None:
    """Label a logarithmic axis with 60, not 6 x 10^1."""
    from matplotlib.ticker import LogFormatter  # noqa: PLC0415 (of the extra `bench` only)

    axis.set_major_formatter(LogFormatter())
    axis.set_minor_formatter(LogFormatter())


def _bars(new: Any, cells: Mapping[str, Mapping[str, Rounds]], column: Column, title: str) -> Any:
    """Draw a group of bars for each cell; a line shows the range of the rounds."""
    picture = new(figsize=(8, 1 + 2.2 * len(cells)), layout="constrained")
    axes = picture.subplots(len(cells), 1, squeeze=False)[:, 0]
    for axis, (cell, peers) in zip(axes, cells.items(), strict=True):
        values = [[figure(one, column) for one in rounds] for rounds in peers.values()]
        middles = [median(of_peer) for of_peer in values]
        spans = [
            [middle - min(of_peer) for middle, of_peer in zip(middles, values, strict=True)],
            [max(of_peer) - middle for middle, of_peer in zip(middles, values, strict=True)],
        ]
        colours = [OURS if _is_ours(peer) else OTHERS for peer in peers]
        bars = axis.barh(list(peers), middles, xerr=spans, color=colours, ecolor="#333333")
        axis.bar_label(bars, fmt=_three_digits, padding=4)
        axis.invert_yaxis()
        axis.set_title(cell, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.12)
    axes[-1].set_xlabel(title)
    return picture


def _curves(new: Any, loads: Mapping[str, Mapping[str, Rounds]]) -> Any:
    """Draw a line for each peer over the percentiles, on a logarithmic axis."""
    picture = new(figsize=(8, 1 + 3 * len(loads)), layout="constrained")
    axes = picture.subplots(len(loads), 1, squeeze=False)[:, 0]
    for axis, (load, peers) in zip(axes, loads.items(), strict=True):
        for peer, rounds in peers.items():
            middles = [median(figure(one, column) for one in rounds) for column in PERCENTILES]
            titles = [column.title.removesuffix(" ms") for column in PERCENTILES]
            axis.plot(titles, middles, marker="o", label=peer, lw=3 if _is_ours(peer) else 1.5)
        axis.set_yscale("log")
        _say_plainly(axis.yaxis)
        axis.set_ylabel("ms")
        axis.set_title(load, loc="left")
        axis.legend(frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    return picture


def _is_ours(peer: str) -> bool:
    return peer.partition("-")[0] in ("eos", "alo")


def _three_digits(value: float) -> str:
    """Format all digits before the point, and at least three digits in total."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
