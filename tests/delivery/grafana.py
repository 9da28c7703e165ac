"""How Grafana stores a board: its panels, their places, and its variables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from tests.delivery.series import BY_KEY

COLUMNS: Final = 24
"""Width of a board of Grafana."""

DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """
    One panel.

    Attributes:
        queries: Legend by query.
        key: Of the metric whose text describes the panel.
        unit: Grafana's name of a unit.
        steps: Colour by the least value that has it; for a single number.
    """

    title: str
    queries: Mapping[str, str]
    key: str
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    height: int = 7
    steps: Mapping[float, str] | None = None


def _json_of(panel: Panel) -> dict[str, Any]:
    """Return a panel as Grafana stores it, without its id and place."""
    is_table = panel.kind == "table"
    defaults: dict[str, Any] = {"unit": panel.unit}
    if panel.steps is not None:
        steps = [
            {"color": colour, "value": None if least == 0 else least}
            for least, colour in panel.steps.items()
        ]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
        defaults["color"] = {"mode": "thresholds"}
    found: dict[str, Any] = {
        "type": panel.kind,
        "title": panel.title,
        "description": BY_KEY[panel.key].text,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + position),
                "datasource": DATASOURCE,
                "expr": query,
                "legendFormat": legend,
                "format": "table" if is_table else "time_series",
                "instant": is_table,
                "range": not is_table,
            }
            for position, (query, legend) in enumerate(panel.queries.items())
        ],
    }
    if panel.kind == "stat":
        found["options"] = {"colorMode": "value", "reduceOptions": {"calcs": ["lastNotNull"]}}
    if is_table:
        found["transformations"] = [{"id": "merge", "options": {}}, _columns(panel)]
    return found


def _columns(panel: Panel) -> dict[str, Any]:
    """Return the transformation that hides the time and names the columns of values."""
    legends = {
        f"Value #{chr(ord('A') + position)}": legend
        for position, legend in enumerate(panel.queries.values())
        if legend
    }
    hidden = {"Time": True} if legends else {"Time": True, "Value": True}
    options = {"excludeByName": hidden, "renameByName": legends}
    return {"id": "organize", "options": options}


def variable(name: str, query: str) -> dict[str, Any]:
    """Return a variable that selects values of a label; all of them at first."""
    return {
        "name": name,
        "label": name,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def placed(rows: Iterable[tuple[str, Sequence[Panel]]]) -> list[dict[str, Any]]:
    """Return the panels of all rows from left to right, each row below the one before."""
    found: list[dict[str, Any]] = []
    ids, y = count(1), 0
    for title, panels in rows:
        place = {"x": 0, "y": y, "w": COLUMNS, "h": 1}
        head = {"type": "row", "title": title, "collapsed": False, "panels": []}
        found.append({"id": next(ids), **head, "gridPos": place})
        x, y = 0, y + 1
        for panel in panels:
            if x + panel.width > COLUMNS:
                x, y = 0, y + panel.height
            place = {"x": x, "y": y, "w": panel.width, "h": panel.height}
            found.append({"id": next(ids), **_json_of(panel), "gridPos": place})
            x += panel.width
        y += panels[-1].height
    return found
