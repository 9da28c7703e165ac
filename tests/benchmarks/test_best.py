"""Ratios to MirrorMaker 2's best mode, and which lane a peer used."""

import json
from math import nan
from pathlib import Path
from typing import Any

from benchmarks.best import best_mode, by_round, overview
from benchmarks.lane_share import lane_figures, lane_lines
from benchmarks.peers import PEERS
from benchmarks.report import COPY
from eos_mirror.driver.paths import PASSED, shares

RATE, CPU = COPY[0], COPY[2]


def rounds(rates: list[float], cpu_s: list[float]) -> list[dict[str, Any]]:
    """Return the figures of some rounds."""
    return [
        {"rate": rate, "cpu_s": {"mirror": spent}} for rate, spent in zip(rates, cpu_s, strict=True)
    ]


CELL = {
    "eos": rounds([4e6, 3e6, 2e6], [0.1, 0.2, 0.3]),
    "mm2-eos": rounds([4e5, 4e5, 9e5], [2.0, 2.0, 2.0]),
    "mm2-alo": rounds([5e5, 5e5, 5e5], [3.0, 1.0, 3.0]),
}


def test_the_best_mode_is_chosen_for_each_figure() -> None:
    """A rate is compared with the mode of the highest median, a cost with that of the lowest."""
    assert best_mode(CELL, RATE) == "mm2-alo"
    assert best_mode(CELL, CPU) == "mm2-eos"


def test_a_figure_that_no_mode_has_is_not_compared() -> None:
    """Without MirrorMaker 2, or without a figure of it, there is no best mode."""
    assert best_mode({"eos": CELL["eos"]}, RATE) is None
    assert best_mode({"mm2-eos": [{"rate": nan}]}, RATE) is None
    assert not list(by_round({"eos": CELL["eos"]}))


def test_every_round_is_shown_beside_the_median() -> None:
    """The table has the ratio of each round, which is taken within the round."""
    lines = list(by_round(CELL))

    assert "| eos: k rec/s | mm2-alo | 6.00 (4.00-8.00) | 8.00 6.00 4.00 |" in lines
    assert "| eos: CPU | mm2-eos | 0.10 (0.05-0.15) | 0.05 0.10 0.15 |" in lines


def test_several_cells_end_in_one_table() -> None:
    """The last table has one line for each cell; a single cell needs none."""
    lines = list(overview({"100B": CELL, "1000B": CELL}))

    assert [line.split(" |")[0] for line in lines[-2:]] == ["| 100B: eos", "| 1000B: eos"]
    assert "6.00 (4.00-8.00)" in lines[-1]
    assert not list(overview({"100B": CELL}))


def test_the_share_of_passed_records_is_read_from_the_log(tmp_path: Path) -> None:
    """Summaries are added up; lines that are no events are ignored."""
    log = tmp_path / "p1.log"
    events = [
        {"event": "flow.summary", "records": 60, **shares({PASSED: 50, "handler": 7, "order": 3})},
        {"event": "flow.summary", "records": 40, **shares({PASSED: 40})},
        {"event": "ready"},
    ]
    log.write_text("\n".join(["warning", *map(json.dumps, events)]))

    found = lane_figures(PEERS["eos"], log)

    assert found["lane_counts"] == {"records": 100, "passed": 90, "decoded": 10}
    assert list(lane_lines({"eos": [found]}))[1] == (
        "eos: `data.path = auto`, our own lane; 90.0 % of the records in batches that it passed."
    )


def test_a_log_without_these_counters_says_only_which_lane(tmp_path: Path) -> None:
    """The client library has no batches to pass; other programs have no lane."""
    log = tmp_path / "p1.log"
    log.write_text(json.dumps({"event": "flow.summary", "records": 60}))

    found = lane_figures(PEERS["eos-client"], log)

    assert list(lane_lines({"eos-client": [found]}))[1] == (
        "eos-client: `data.path = client`, the client library."
    )
    assert not lane_figures(PEERS["mm2-eos"], log)
    assert not list(lane_lines({"mm2-eos": [{"rate": 1.0}]}))
