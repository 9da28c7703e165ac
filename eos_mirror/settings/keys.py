"""The table of keys, built from the fields of the settings and from MirrorMaker 2's list."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from eos_mirror.settings import accepted
from eos_mirror.settings.connector import ConnectorSettings
from eos_mirror.settings.filters import FilterSettings
from eos_mirror.settings.groups import GroupSettings
from eos_mirror.settings.heartbeats import HeartbeatSettings
from eos_mirror.settings.key import Key, Scope
from eos_mirror.settings.metrics import MetricSettings
from eos_mirror.settings.model import (
    ClusterSettings,
    FlowSettings,
    Settings,
)
from eos_mirror.settings.refusals import RefusalSettings
from eos_mirror.settings.rest import RestSettings
from eos_mirror.settings.values import Aliases, Boolean, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    A key that this version uses.

    Attributes:
        key: Name, default and text.
        kind: Name and unit of the type.
        scope: Where the key may be set.
        attribute: Field of the settings that holds the value; empty if only the loader uses it.
        adapter: Converts text to the value, or raises pydantic's ValidationError.
    """

    key: Key
    kind: Kind
    scope: Scope
    attribute: str
    adapter: TypeAdapter[Any] = field(repr=False)

    @property
    def name(self) -> str:
        """Return the key's name without the prefix of its scope."""
        return self.key.name


def _row(annotation: Any, scope: Scope, name: str) -> Row:
    _, *extras = get_args(annotation)
    return Row(
        key=next(extra for extra in extras if isinstance(extra, Key)),
        kind=next(extra for extra in extras if isinstance(extra, Kind)),
        scope=scope,
        attribute=name,
        adapter=TypeAdapter(annotation),
    )


def _rows(model: type, scope: Scope) -> tuple[Row, ...]:
    hints = get_type_hints(model, include_extras=True)
    return tuple(
        _row(hint, scope, name) for name, hint in hints.items() if get_origin(hint) is Annotated
    )


CLUSTERS = Annotated[
    Aliases, Key("clusters", None, "The aliases of all clusters, separated by commas.")
]
ENABLED = Annotated[
    Boolean, Key("enabled", "false", "Whether the flow runs. Only `A->B.enabled` counts.")
]
SPARK = Annotated[
    str,
    Kind("string"),
    Key(
        "spark.*",
        None,
        "Passed to the Spark session.",
        shown_default="without `spark.master`: this machine with one slot per task",
    ),
]
VERIFY_SPARK = Annotated[
    str,
    Kind("string"),
    Key(
        "verify.spark.*",
        None,
        "Passed to the Spark session of `verify`.",
        shown_default="the values of `spark.*`; with `runtime = local` no Spark",
    ),
]

TOP_ROWS = _rows(Settings, Scope.TOP)
CLUSTER_ROWS = _rows(ClusterSettings, Scope.CLUSTER)
FLOW_ROWS = _rows(FlowSettings, Scope.FLOW)
GROUP_ROWS = _rows(GroupSettings, Scope.FLOW)
FILTER_ROWS = _rows(FilterSettings, Scope.FLOW)
HEARTBEAT_ROWS = _rows(HeartbeatSettings, Scope.FLOW)
METRIC_ROWS = _rows(MetricSettings, Scope.TOP)
CONNECTOR_ROWS = _rows(ConnectorSettings, Scope.FLOW)
REFUSAL_ROWS = _rows(RefusalSettings, Scope.FLOW)
REST_ROWS = _rows(RestSettings, Scope.TOP)
CLUSTERS_ROW = _row(CLUSTERS, Scope.TOP, "")
ENABLED_ROW = _row(ENABLED, Scope.FLOW_ONLY, "")
SPARK_ROW = _row(SPARK, Scope.TOP, "")
VERIFY_SPARK_ROW = _row(VERIFY_SPARK, Scope.TOP, "")

FLOW_PARTS = {
    "": FLOW_ROWS,
    "groups": GROUP_ROWS,
    "filters": FILTER_ROWS,
    "refusals": REFUSAL_ROWS,
    "connector": CONNECTOR_ROWS,
}
"""The rows of a flow, by the field of `FlowSettings` that holds their values; empty: itself."""

TABLE = (
    CLUSTERS_ROW,
    *TOP_ROWS,
    *METRIC_ROWS,
    *REST_ROWS,
    SPARK_ROW,
    VERIFY_SPARK_ROW,
    *CLUSTER_ROWS,
    ENABLED_ROW,
    *(row for rows in FLOW_PARTS.values() for row in rows),
    *HEARTBEAT_ROWS,
)
"""Every key this version uses, in the order of the reference page."""

ROWS = {row.name: row for row in TABLE}

FALLBACKS = frozenset(row.key.fallback for row in TABLE if row.key.fallback)
"""MirrorMaker 2's keys whose value is the default of one of our keys."""


def values_of(flow: FlowSettings) -> Iterator[tuple[Row, Any]]:
    """Yield every row of a flow with its value."""
    for part, rows in FLOW_PARTS.items():
        holder = getattr(flow, part) if part else flow
        yield from ((row, getattr(holder, row.attribute)) for row in rows)


@cache
def known_names() -> tuple[str, ...]:
    """Return every key that is not a family, for suggestions."""
    return (*ROWS, *accepted.NAMES)
