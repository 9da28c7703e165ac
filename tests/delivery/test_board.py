"""The Grafana board, and the names of the series that it shows."""

from itertools import combinations
from pathlib import Path
from urllib.request import urlopen

import pytest

from eos_mirror.driver.exporters import exported
from eos_mirror.settings.metrics import MetricSettings
from eos_mirror.settings.values import Address, Exporter
from eos_mirror.telemetry.metrics import LEGACY, METRICS, NEW, Kind, Of
from eos_mirror.telemetry.registry import Reader, register_metrics
from tests.delivery.board import BOARD, board, queries, text_of_board
from tests.delivery.files import run_tool
from tests.delivery.series import ALL, BY_KEY, NEW_BY_KEY, named_in, series_of

FLOW = {"source": "A", "target": "B"}
PARTITION = {**FLOW, "topic": "A.t", "partition": "0"}
LABELS = {
    Of.FLOW: FLOW,
    Of.TASK: {**FLOW, "task": "0"},
    Of.PATH: {**FLOW, "task": "0", "path": "passed"},
    Of.PARTITION: PARTITION,
    Of.STATE: {**PARTITION, "state": "failed", "cause": "RecordRefused"},
    Of.SOURCE_CONNECTOR: {**PARTITION, "connector": "MirrorSourceConnector", "task": "0"},
    Of.CHECKPOINT_CONNECTOR: {**FLOW, "connector": "MirrorCheckpointConnector", "task": "0"},
}


def reader(of: Of) -> Reader:
    """Return a reader with one row that has a value for each metric."""
    values = {metric.key: 1 for metric in METRICS if metric.of is of}
    return lambda: [(LABELS[of], values)]


def test_our_names_are_those_of_the_page() -> None:
    """The exporter writes the names, the kinds and the labels that boards and alerts use."""
    addresses: list[str] = []
    settings = MetricSettings(
        exporters=(Exporter.PROMETHEUS,), listener=Address("127.0.0.1", 0), partitions=True
    )
    with exported(settings, lambda address, *_: addresses.append(address)) as provider:
        register_metrics(provider, {of: reader(of) for of in Of})
        with urlopen(addresses[0], timeout=10) as answer:  # noqa: S310 (an address of this test)
            lines = answer.read().decode().splitlines()

    for metric in METRICS:
        labels = ",".join(f'{key}="{value}"' for key, value in sorted(LABELS[metric.of].items()))
        assert f"# TYPE {series_of(metric)} {metric.kind.value}" in lines
        assert f"{series_of(metric)}{{{labels}}} 1.0" in lines


def test_the_board_is_the_one_that_is_generated() -> None:
    """A change of the metrics or of the generator reaches the file."""
    assert BOARD.read_text(encoding="utf-8") == text_of_board(), (
        "run: python -m tests.delivery.board"
    )


@pytest.mark.parametrize("query", queries())
def test_a_query_names_series_that_exist(query: str) -> None:
    """A panel without data would look like a healthy mirror."""
    assert named_in(query)
    assert named_in(query) <= ALL


def test_the_board_shows_every_metric() -> None:
    """A new metric needs a panel in tests/delivery/board.py."""
    shown = set[str]().union(*map(named_in, queries()))

    assert sorted(ALL - shown) == []


def test_the_variables_ask_for_series_that_exist() -> None:
    """The lists of sources, targets and topics come from our own series."""
    variables = {one["name"]: one for one in board()["templating"]["list"]}

    assert list(variables) == ["datasource", "source", "target", "topic"]
    for name in ("source", "target", "topic"):
        assert named_in(variables[name]["query"]["query"]) <= ALL


def test_no_two_panels_overlap() -> None:
    """Every panel has its place, within the width of the board."""
    places = [panel["gridPos"] for panel in board()["panels"]]

    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        assert (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        ), f"{one} {other}"


@pytest.mark.parametrize("unused", [(), (LEGACY,), (NEW,)], ids=["both", "new", "legacy"])
def test_every_query_has_an_answer(tmp_path: Path, unused: tuple[str, ...]) -> None:
    """Prometheus finds data for each query, whatever the format of MirrorMaker 2's names."""
    lines = ["evaluation_interval: 1m", "tests:", "  - interval: 1m", "    input_series:"]
    for metric in METRICS:
        if metric.name.startswith(unused):
            continue
        labels = ",".join(f'{key}="{value}"' for key, value in LABELS[metric.of].items())
        values = "0+60x60" if metric.kind is Kind.COUNTER else "1x60"
        lines += [f"      - series: '{series_of(metric)}{{{labels}}}'", f"        values: {values}"]
    lines.append("    promql_expr_test:")
    for query in queries():
        lines += [
            f"      - expr: 'count({query}) > bool 0'",
            "        eval_time: 30m",
            "        exp_samples: [{labels: '{}', value: 1}]",
        ]
    path = tmp_path / "board_test.yaml"
    path.write_text("\n".join(lines))

    run_tool("promtool", "test", "rules", path)


def test_a_metric_with_two_names_is_counted_once(tmp_path: Path) -> None:
    """While dashboards move to the new names, a run exports both."""
    lines = ["evaluation_interval: 1m", "tests:", "  - interval: 1m", "    input_series:"]
    for by_key in (BY_KEY, NEW_BY_KEY):
        metric = by_key["record-rate"]
        labels = ",".join(f'{key}="{value}"' for key, value in LABELS[metric.of].items())
        lines += [f"      - series: '{series_of(metric)}{{{labels}}}'", "        values: 7x10"]
    (query,) = (one for one in queries() if "record_rate" in one)
    lines += [
        "    promql_expr_test:",
        f"      - expr: 'sum({query})'",
        "        eval_time: 5m",
        "        exp_samples: [{labels: '{}', value: 7}]",
    ]
    path = tmp_path / "names_test.yaml"
    path.write_text("\n".join(lines))

    run_tool("promtool", "test", "rules", path)
