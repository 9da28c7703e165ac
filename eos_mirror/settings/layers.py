"""
Precedence of configuration prefixes for one client of a flow, lowest first.

This is MirrorMaker 2's order with its surprises, such as `A.consumer.x` beating `A->B.consumer.x`.
One difference: MirrorMaker 2 drops `consumer.x`, `producer.x` and `admin.x` at top level. Here
they apply, with the lowest precedence.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eos_mirror.core.flow import Flow
from eos_mirror.settings.properties import Property
from eos_mirror.settings.sections import is_common_client_key

OVERRIDE = "override."
"""Connect's word for a client setting of one connector, which people also write for a cluster."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Lines with a prefix. After a `bare` prefix, only names common to all clients apply."""

    prefix: str
    bare: bool = False


def reader_layers(flow: Flow, *, side: str, role: str) -> Sequence[Layer]:
    """
    Return the layers of a consumer or admin client.

    Args:
        side: `source` or `target`.
        role: `consumer` or `admin`.

    Source: MirrorConnectorConfig, MirrorMakerConfig (Kafka 4.x).
    """
    alias = flow.source if side == "source" else flow.target
    return (
        Layer(f"{flow}.{side}.cluster.", bare=True),
        Layer(f"{role}."),
        Layer(f"{flow}.{role}."),
        Layer("", bare=True),
        Layer(f"{alias}.", bare=True),
        Layer(f"{alias}.{role}."),
        Layer(f"{flow}.{side}.{role}."),
    )


def writer_layers(flow: Flow) -> Sequence[Layer]:
    """Return the layers of the data producer, which in MirrorMaker 2 is the Connect worker's."""
    return (
        Layer("producer."),
        Layer(f"producer.{OVERRIDE}"),
        Layer("", bare=True),
        Layer(f"{flow.target}.", bare=True),
        Layer(f"{flow.target}.producer."),
        Layer(f"{flow.target}.producer.{OVERRIDE}"),
        Layer(f"{flow}.producer.{OVERRIDE}"),
    )


def obeyed(lines: Mapping[str, Property], layers: Sequence[Layer]) -> dict[str, Property]:
    """Return the effective line of every client setting, by its name without prefix."""
    return {name: line for layer in layers for name, line in _in_layer(lines, layer)}


def heard(lines: Mapping[str, Property], layers: Sequence[Layer]) -> set[str]:
    """Return every line that belongs to a layer, even if a stronger layer overrides it."""
    return {line.key for layer in layers for _, line in _in_layer(lines, layer)}


def _in_layer(lines: Mapping[str, Property], layer: Layer) -> Iterator[tuple[str, Property]]:
    for key, line in lines.items():
        name = key.removeprefix(layer.prefix)
        if not name or not key.startswith(layer.prefix) or name.startswith(OVERRIDE):
            continue
        if not layer.bare or is_common_client_key(name):
            yield name, line
