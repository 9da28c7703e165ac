"""
`eos-mirror config show FILE [A->B]`: prints every effective value, and where it comes from.

`from-strimzi`, `from-connect` and `from-mm1` are in `config_convert.py`.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from enum import Enum
from typing import Any, NamedTuple

from eos_mirror.cli.config_convert import add_mm1_flags, from_connect, from_mm1, from_strimzi
from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.settings import clients
from eos_mirror.settings.connect import PREFIXES
from eos_mirror.settings.keys import (
    CLUSTER_ROWS,
    HEARTBEAT_ROWS,
    METRIC_ROWS,
    REST_ROWS,
    TOP_ROWS,
    Row,
    values_of,
)
from eos_mirror.settings.mask import mask
from eos_mirror.settings.model import FlowSettings, Settings

FIXED = "eos_mirror"
"""Origin of client values that the configuration does not set or cannot change."""

UNITS = {"ms": timedelta(milliseconds=1), "s": timedelta(seconds=1)}


class Shown(NamedTuple):
    """One line: the full key, its value as a file would have it, and `file:line` or its origin."""

    key: str
    value: str
    origin: str


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser("config", help="show or convert a configuration")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="every effective value, and where it comes from")
    show.add_argument("file", metavar="FILE", help="an mm2.properties")
    show.add_argument("flow", metavar="A->B", nargs="?", help="only this flow")
    show.add_argument("--json", action="store_true", help="print a JSON object for each value")
    show.set_defaults(act=_show)
    strimzi = actions.add_parser("from-strimzi", help="convert a KafkaMirrorMaker2 of Strimzi")
    strimzi.add_argument("file", metavar="FILE", help="YAML; - reads stdin")
    strimzi.set_defaults(act=from_strimzi)
    connect = actions.add_parser("from-connect", help="convert connectors of MirrorMaker 2")
    connect.add_argument("file", metavar="FILE", nargs="+", help="JSON; - reads stdin")
    connect.set_defaults(act=from_connect)
    mm1 = actions.add_parser("from-mm1", help="convert a command line of MirrorMaker 1")
    add_mm1_flags(mm1)
    mm1.set_defaults(act=from_mm1)


def run(args: argparse.Namespace) -> int:
    """Perform the action and return the exit code. Contacts no cluster."""
    act: Callable[[argparse.Namespace], int] = args.act
    return act(args)


def _show(args: argparse.Namespace) -> int:
    """Print the effective values and return the exit code."""
    settings = settings_of(args.file)
    flows = [flow_named(settings, args.flow)] if args.flow else settings.flows
    lines = [] if args.flow else list(_of_all(settings))
    for flow in flows:
        lines += _of_flow(flow, settings)
    for line in lines:
        shown = line._replace(value=mask(line.key, line.value))
        if args.json:
            sys.stdout.write(json.dumps(shown._asdict()) + "\n")
        else:
            value = shown.value.replace("\n", "\\n")  # of PEM, as a file would have it
            sys.stdout.write(f"{shown.key} = {value}  ({shown.origin})\n")
    return 0


def _of_all(settings: Settings) -> Iterator[Shown]:
    """Yield the values that belong to no flow."""
    for row in TOP_ROWS:
        yield _of_row(row, settings, owner="", values=settings)
    for row in METRIC_ROWS:
        yield _of_row(row, settings, owner="", values=settings.metrics)
    for row in REST_ROWS:
        yield _of_row(row, settings, owner="", values=settings.rest)
    for cluster in settings.clusters:
        for row in CLUSTER_ROWS:
            yield _of_row(row, settings, owner=f"{cluster.alias}.", values=cluster)
    for pair in settings.heartbeats:
        for row in HEARTBEAT_ROWS:
            yield _of_row(row, settings, owner=f"{pair.flow}.", values=pair)
    for name, value in settings.spark.items():
        yield Shown(name, value, settings.origins.get(name, FIXED))


def _of_flow(flow: FlowSettings, settings: Settings) -> Iterator[Shown]:
    for row, value in values_of(flow):
        key = f"{flow.flow}.{row.name}"
        yield Shown(key, _as_written(value, row), settings.origins[key])
    for name, text in flow.transforms.texts.items():
        yield Shown(f"{flow.flow}.{name}", text, settings.origins[f"{flow.flow}.{name}"])
    complete = {
        "source_consumer": clients.source_consumer(flow, slot=0),
        "source_admin": clients.source_admin(flow),
        "target_producer": clients.target_producer(flow),
        "target_admin": clients.target_admin(flow),
    }
    for role, config in complete.items():
        said: Mapping[str, str] = getattr(flow.clients, role)
        owner = f"{flow.flow}.{PREFIXES[role]}"
        for name, value in sorted(config.items()):
            origin = settings.origins.get(owner + name, str(settings.path))
            is_said = said.get(name) == value
            yield Shown(owner + name, value, origin if is_said else FIXED)


def _of_row(row: Row, settings: Settings, *, owner: str, values: object) -> Shown:
    key = owner + row.name
    value = _as_written(getattr(values, row.attribute), row)
    return Shown(key, value, settings.origins[key])


def _as_written(value: object, row: Row) -> str:
    match value:
        case None:
            return "-1"
        case bool():
            return str(value).lower()
        case timedelta():
            return str(value // UNITS[row.kind.unit])
        case Enum(value=said) | re.Pattern(pattern=said):
            return str(said)
        case tuple() if type(value) is tuple:
            return ", ".join(_as_written(item, row) for item in value)
    text = str(value)
    return text.replace("\n", ", ") if row.kind.name == "list" else text
