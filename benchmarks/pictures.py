"""Pictures of a result: PNG and SVG, side by side with the page."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.report import COPY, DELAY, Column, Results, Rounds, columns_of, figure

RATE, CPU = COPY[0], COPY[2]
BARS = {
    "rate": (RATE, "thousand records a second"),
    "cpu": (CPU, "CPU seconds of the mirror for a million records"),
}
"""Figure and title of the axis of each picture."""

OURS, OTHERS = "#1b7f5a", "#9aa3ad"
PERCENTILES = DELAY[:4]
SUFFIXES = (".svg", ".png")


def draw(folder: Path, document: Mapping[str, Any]) -> list[Path]:
    """
    Pictures of a file of `--json`.

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


def _bars(new: Any, cells: Mapping[str, Mapping[str, Rounds]], column: Column, title: str) -> Any:
    """A row of bars for each cell; a line shows the range of the rounds."""
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
        axis.bar_label(bars, fmt="%.3g", padding=4)
        axis.invert_yaxis()
        axis.set_title(cell, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.12)
    axes[-1].set_xlabel(title)
    return picture


def _curves(new: Any, loads: Mapping[str, Mapping[str, Rounds]]) -> Any:
    """A line for each peer over the percentiles, logarithmic."""
    picture = new(figsize=(8, 1 + 3 * len(loads)), layout="constrained")
    axes = picture.subplots(len(loads), 1, squeeze=False)[:, 0]
    for axis, (load, peers) in zip(axes, loads.items(), strict=True):
        for peer, rounds in peers.items():
            middles = [median(figure(one, column) for one in rounds) for column in PERCENTILES]
            titles = [column.title.removesuffix(" ms") for column in PERCENTILES]
            axis.plot(titles, middles, marker="o", label=peer, lw=3 if _is_ours(peer) else 1.5)
        axis.set_yscale("log")
        axis.set_ylabel("ms")
        axis.set_title(load, loc="left")
        axis.legend(frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    return picture


def _is_ours(peer: str) -> bool:
    return peer.partition("-")[0] in ("eos", "alo")
