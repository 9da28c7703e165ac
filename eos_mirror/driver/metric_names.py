"""
MirrorMaker 2's metrics under the names that a flow asks for with `metric.names.formats`.

A row under a new name has two attributes more. They are those of a MirrorMaker 2 that runs without
a Connect cluster. Source: KIP-1280; MirrorMakerConfig of Kafka 4.3.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from eos_mirror.settings.values import NameFormat
from eos_mirror.telemetry.metrics import MM2_KEYS

SOURCE_CONNECTOR: Final = "MirrorSourceConnector"
CHECKPOINT_CONNECTOR: Final = "MirrorCheckpointConnector"
CHECKPOINT_TASK: Final = "0"
"""A flow has one checkpoint task."""

Row = tuple[Mapping[str, str], Mapping[str, Any]]
"""Attributes, and values by `Metric.key`."""


def under_legacy_names(rows: Iterable[Row], formats: Collection[NameFormat]) -> Iterator[Row]:
    """Yield the rows; without MirrorMaker 2's metrics if the flow has no legacy names."""
    for attributes, values in rows:
        if NameFormat.LEGACY in formats:
            yield attributes, values
        else:
            yield attributes, {key: values[key] for key in values.keys() - MM2_KEYS}


def under_new_names(rows: Iterable[Row], *, connector: str, task: str = "") -> Iterator[Row]:
    """
    Yield the rows with the attributes of the new names.

    Args:
        task: Number of the task; empty if the rows have it.
    """
    tags = {"connector": connector, **({"task": task} if task else {})}
    for attributes, values in rows:
        yield {**attributes, **tags}, values
