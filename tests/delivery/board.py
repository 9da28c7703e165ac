"""
The Grafana board, generated from the table of metrics.

`python -m tests.delivery.board` writes it.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tests.delivery.grafana import COLUMNS, Panel, placed, variable
from tests.delivery.series import BY_KEY, NEW_BY_KEY, series_of

BOARD: Final = Path(__file__).parents[2] / "config" / "monitoring" / "grafana.json"

VARIABLE: Final = re.compile(r"\$(?:source|target|topic|__rate_interval)\b")
GREEN, YELLOW, RED = "green", "yellow", "red"
TOP: Final = 20
"""Lines in a graph of partitions: a board with every partition of a large flow is unreadable."""

BY_FLOW: Final = "source, target"
BY_TASK: Final = "source, target, task"
BY_PATH: Final = "source, target, path"
BY_TOPIC: Final = "source, target, topic"
BY_PARTITION: Final = "source, target, topic, partition"
NOT_MIRRORED: Final = ',state!="mirroring"'
FLOW: Final = "{{source}}->{{target}}"
TASK: Final = FLOW + " task {{task}}"
PATH: Final = FLOW + " {{path}}"
TOPIC: Final = FLOW + " {{topic}}"
PARTITION: Final = "{{topic}}-{{partition}}"


def of_flow(key: str) -> str:
    """Return the series of a metric, for the selected flows."""
    return under_either_name(key, 'source=~"$source",target=~"$target"', BY_FLOW)


def of_topic(key: str, more: str = "") -> str:
    """Return the series of a metric of partitions, for the selected flows and topics."""
    labels = f'source=~"$source",target=~"$target",topic=~"$topic"{more}'
    return under_either_name(key, labels, BY_PARTITION)


def under_either_name(key: str, labels: str, by: str) -> str:
    """Return the series of a metric; a run with both names has one of them, so none adds up."""
    series = f"{series_of(BY_KEY[key])}{{{labels}}}"
    if key not in NEW_BY_KEY:
        return series
    return f"({series} or on ({by}) {series_of(NEW_BY_KEY[key])}{{{labels}}})"


def rate(key: str, by: str) -> str:
    """Return the query of a counter of tasks or flows, per second."""
    return f"sum by ({by}) (rate({of_flow(key)}[$__rate_interval]))"


def growth(key: str, by: str) -> str:
    """Return the query of a counter: how much it grew between two points of the graph."""
    return f"sum by ({by}) (increase({of_flow(key)}[$__rate_interval]))"


def commit_ms(by: str) -> str:
    """Return the query of the mean time of a commit."""
    return f"{rate('commit_ms', by)} / {rate('transactions', by)}"


def top(key: str, how: str = "max") -> str:
    """Return the query of the partitions with the highest values."""
    return f"topk({TOP}, {how} by ({BY_PARTITION}) ({of_topic(key)}))"


def number(title: str, query: str, key: str, **changes: Any) -> Panel:
    """Return a panel with one number."""
    shape = {"kind": "stat", "width": 3, "height": 4, **changes}
    return Panel(title=title, queries={query: ""}, key=key, **shape)


def graph(title: str, query: str, legend: str, key: str, unit: str = "short") -> Panel:
    """Return a graph of one query."""
    return Panel(title=title, queries={query: legend}, key=key, unit=unit)


def of_a_minute(title: str, key: str, legend: str, by: str) -> Panel:
    """Return a graph of the least, greatest and mean value of the last minute."""
    select = of_flow if by == BY_FLOW else of_topic
    queries = {
        f"{how} by ({by}) ({select(f'{key}-{how}')})": f"{legend} {how}"
        for how in ("min", "avg", "max")
    }
    return Panel(title=title, queries=queries, key=key, unit="ms")


def overview() -> list[Panel]:
    """Return the numbers that say whether everything is mirrored."""
    per_flow = f"max by ({BY_FLOW}) ({of_flow('stopped')})"
    bad = {0: GREEN, 1: RED}
    return [
        number("Lag", f"sum({of_topic('lag.records')})", "lag.records"),
        number(
            "Lag in time",
            f"max({of_topic('lag.time')})",
            "lag.time",
            unit="s",
            steps={0: GREEN, 60: YELLOW, 300: RED},
        ),
        number("Records per second", f"sum({rate('records', BY_FLOW)})", "records"),
        number("Bytes per second", f"sum({rate('bytes', BY_FLOW)})", "bytes", unit="Bps"),
        number("Partitions owned", f"sum({of_flow('owned')})", "owned"),
        number(
            "Partitions pending",
            f"sum({of_flow('pending')})",
            "pending",
            steps={0: GREEN, 1: YELLOW},
        ),
        number("Partitions stopped", f"sum({per_flow})", "stopped", steps=bad),
        number(
            "Restarts in an hour",
            f"sum(increase({of_flow('restarts')}[1h]))",
            "restarts",
            steps={0: GREEN, 1: YELLOW, 10: RED},
        ),
    ]


def flows() -> list[Panel]:
    """Return the graphs with one line for each flow."""
    return [
        graph("Lag", f"sum by ({BY_FLOW}) ({of_topic('lag.records')})", FLOW, "lag.records"),
        graph("Lag in time", f"max by ({BY_FLOW}) ({of_topic('lag.time')})", FLOW, "lag.time", "s"),
        graph(
            "Lag in bytes",
            f"sum by ({BY_FLOW}) ({of_topic('lag.bytes')})",
            FLOW,
            "lag.bytes",
            "bytes",
        ),
        graph("Records per second", rate("records", BY_FLOW), FLOW, "records"),
        graph("Bytes per second", rate("bytes", BY_FLOW), FLOW, "bytes", "Bps"),
        graph("Mean time of a commit", commit_ms(BY_FLOW), FLOW, "commit_ms", "ms"),
        graph("Partitions owned", f"sum by ({BY_FLOW}) ({of_flow('owned')})", FLOW, "owned"),
        graph("Partitions stopped", f"max by ({BY_FLOW}) ({of_flow('stopped')})", FLOW, "stopped"),
        graph(
            "Lag behind open transactions",
            f"sum by ({BY_FLOW}) ({of_topic('lag.hidden')})",
            FLOW,
            "lag.hidden",
        ),
        replace(
            graph(
                "Partitions by state",
                f"count by ({BY_FLOW}, state) ({of_topic('state')})",
                FLOW + " {{state}}",
                "state",
            ),
            width=COLUMNS,
        ),
    ]


def tasks() -> list[Panel]:
    """Return the graphs with one line for each task."""
    return [
        graph("Records per second", rate("records", BY_TASK), TASK, "records"),
        graph("Transactions per second", rate("transactions", BY_TASK), TASK, "transactions"),
        graph("Mean time of a commit", commit_ms(BY_TASK), TASK, "commit_ms", "ms"),
        graph("Partitions owned", f"sum by ({BY_TASK}) ({of_flow('owned')})", TASK, "owned"),
        graph("Partitions pending", f"sum by ({BY_TASK}) ({of_flow('pending')})", TASK, "pending"),
        graph(
            "Limits for which records wait",
            f"sum by ({BY_TASK}) ({of_flow('throttled')})",
            TASK,
            "throttled",
        ),
        graph("Restarts", growth("restarts", BY_TASK), TASK, "restarts"),
        graph("Incarnations", growth("incarnations", BY_TASK), TASK, "incarnations"),
        graph("Fences", growth("fences", BY_TASK), TASK, "fences"),
        graph("Dropped records", growth("dropped", BY_TASK), TASK, "dropped"),
        graph("Quarantined records", growth("quarantined", BY_TASK), TASK, "quarantined"),
        graph(
            "Records per second, by path through our own lane",
            rate("written", BY_PATH),
            PATH,
            "written",
        ),
    ]


def partitions() -> list[Panel]:
    """Return the graphs with one line for each partition."""
    return [
        graph(f"Lag, {TOP} highest", top("lag.records"), PARTITION, "lag.records"),
        graph(f"Lag in time, {TOP} highest", top("lag.time"), PARTITION, "lag.time", "s"),
        graph("Lag behind open transactions", top("lag.hidden"), PARTITION, "lag.hidden"),
        graph("Records per second", top("record-rate", "sum"), PARTITION, "record-rate"),
        graph("Bytes per second", top("byte-rate", "sum"), PARTITION, "byte-rate", "Bps"),
        graph("Lag in bytes", top("lag.bytes"), PARTITION, "lag.bytes", "bytes"),
        Panel(
            title="Not mirrored",
            queries={
                f"group by ({BY_PARTITION}, state, cause) ({of_topic('state', NOT_MIRRORED)})": ""
            },
            key="state",
            kind="table",
            width=COLUMNS,
        ),
        Panel(
            title="Since the start of the run",
            queries={
                top("record-count", "sum"): "records",
                top("byte-count", "sum"): "bytes",
            },
            key="record-count",
            kind="table",
            width=COLUMNS,
        ),
    ]


def latency() -> list[Panel]:
    """Return the ages of records, when they are read and when they are committed."""
    panels = []
    for title, key in (
        ("Age of records when read", "record-age-ms"),
        ("Age of records when committed", "replication-latency-ms"),
    ):
        last = graph(f"{title}: last record", top(key), PARTITION, key, "ms")
        panels += [of_a_minute(title, key, TOPIC, BY_TOPIC), last]
    return [replace(panel, width=COLUMNS // 2) for panel in panels]


def groups() -> list[Panel]:
    """Return the graphs about consumer groups and their checkpoints."""
    key = "checkpoint-latency-ms"
    return [
        graph("Groups", f"max by ({BY_FLOW}) ({of_flow('groups')})", FLOW, "groups"),
        graph(
            "Time since the last round",
            f"min by ({BY_FLOW}) ({of_flow('groups.age')})",
            FLOW,
            "groups.age",
            "s",
        ),
        graph("Checkpoints per second", rate("checkpoints", BY_FLOW), FLOW, "checkpoints"),
        graph("Syncs of group offsets per second", rate("moved", BY_FLOW), FLOW, "moved"),
        of_a_minute("Checkpoint latency", key, FLOW, BY_FLOW),
        graph("Checkpoint latency: last", f"max by ({BY_FLOW}) ({of_flow(key)})", FLOW, key, "ms"),
    ]


ROWS: Final = {
    "Overview": overview,
    "Per flow": flows,
    "Per task": tasks,
    "Per partition": partitions,
    "Latency": latency,
    "Groups and checkpoints": groups,
}


def _variables() -> list[dict[str, Any]]:
    flow, partition = series_of(BY_KEY["stopped"]), series_of(BY_KEY["lag.records"])
    return [
        {"name": "datasource", "label": "data source", "type": "datasource", "query": "prometheus"},
        variable("source", f"label_values({flow}, source)"),
        variable("target", f'label_values({flow}{{source=~"$source"}}, target)'),
        variable(
            "topic",
            f'label_values({partition}{{source=~"$source",target=~"$target"}}, topic)',
        ),
    ]


def board() -> dict[str, Any]:
    """Return the board as Grafana stores it."""
    return {
        "uid": "eos-mirror",
        "title": "eos_mirror",
        "tags": ["kafka", "eos-mirror"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": _variables()},
        "panels": placed((title, panels()) for title, panels in ROWS.items()),
    }


def text_of_board() -> str:
    """Return the content of the file."""
    return json.dumps(board(), indent=2) + "\n"


def queries() -> list[str]:
    """Return every query of the board, with values for its variables."""
    values = {"$__rate_interval": "5m"}
    return [
        VARIABLE.sub(lambda name: values.get(name[0], ".+"), query)
        for panels in ROWS.values()
        for panel in panels()
        for query in panel.queries
    ]


def main() -> None:
    """Write the board."""
    BOARD.parent.mkdir(parents=True, exist_ok=True)
    BOARD.write_text(text_of_board(), encoding="utf-8")


if __name__ == "__main__":
    main()
