"""The table of keys, built from the fields of the settings and from MirrorMaker 2's list."""

from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from eos_mirror.settings import accepted
from eos_mirror.settings.filters import FilterSettings
from eos_mirror.settings.groups import GroupSettings
from eos_mirror.settings.heartbeats import HeartbeatSettings
from eos_mirror.settings.key import Key, Scope
from eos_mirror.settings.metrics import MetricSettings
from eos_mirror.settings.model import (
    CLUSTERS,
    ENABLED,
    SPARK,
    VERIFY_SPARK,
    ClusterSettings,
    FlowSettings,
    Settings,
)
from eos_mirror.settings.rest import RestSettings
from eos_mirror.settings.values import Kind


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


TOP_ROWS = _rows(Settings, Scope.TOP)
CLUSTER_ROWS = _rows(ClusterSettings, Scope.CLUSTER)
FLOW_ROWS = _rows(FlowSettings, Scope.FLOW)
GROUP_ROWS = _rows(GroupSettings, Scope.FLOW)
FILTER_ROWS = _rows(FilterSettings, Scope.FLOW)
HEARTBEAT_ROWS = _rows(HeartbeatSettings, Scope.FLOW)
METRIC_ROWS = _rows(MetricSettings, Scope.TOP)
REST_ROWS = _rows(RestSettings, Scope.TOP)
CLUSTERS_ROW = _row(CLUSTERS, Scope.TOP, "")
ENABLED_ROW = _row(ENABLED, Scope.FLOW_ONLY, "")
SPARK_ROW = _row(SPARK, Scope.TOP, "")
VERIFY_SPARK_ROW = _row(VERIFY_SPARK, Scope.TOP, "")

TABLE = (
    CLUSTERS_ROW,
    *TOP_ROWS,
    *METRIC_ROWS,
    *REST_ROWS,
    SPARK_ROW,
    VERIFY_SPARK_ROW,
    *CLUSTER_ROWS,
    ENABLED_ROW,
    *FLOW_ROWS,
    *GROUP_ROWS,
    *FILTER_ROWS,
    *HEARTBEAT_ROWS,
)
"""Every key this version uses, in the order of the reference page."""

ROWS = {row.name: row for row in TABLE}

FALLBACKS = frozenset(row.key.fallback for row in TABLE if row.key.fallback)
"""MirrorMaker 2's keys whose value is the default of one of our keys."""


@cache
def known_names() -> tuple[str, ...]:
    """Return every key that is not a family, for suggestions."""
    return (*ROWS, *accepted.NAMES)
