"""`eos-mirror quarantine`: shows the records that the target refused."""

import argparse
import json
import re
import sys
from typing import Any

from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.core.desired import ALL
from eos_mirror.core.plural import counted
from eos_mirror.driver.first_contact import reach_clusters
from eos_mirror.operate.desired import checked_pattern
from eos_mirror.operate.quarantine import Held, quarantined
from eos_mirror.settings.model import FlowSettings


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser("quarantine", help="show the records that the target refused")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser("list", help="print a line for each record")
    show.add_argument("file", metavar="FILE", help="an mm2.properties")
    show.add_argument("flow", metavar="A->B")
    show.add_argument("--topics", metavar="REGEX", default=ALL, help="source topics (default: all)")
    show.add_argument("--json", action="store_true", help="print a JSON object for each record")
    show.set_defaults(act=_list)


def run(args: argparse.Namespace) -> int:
    """Perform the action and return the exit code; `main` prints errors."""
    settings = settings_of(args.file)
    flow = flow_named(settings, args.flow)
    pattern = re.compile(checked_pattern(args.topics))
    reach_clusters(settings, [flow])
    code: int = args.act(flow, args, pattern)
    return code


def _list(flow: FlowSettings, args: argparse.Namespace, pattern: re.Pattern[str]) -> int:
    count = 0
    for held in quarantined(flow, lambda topic: pattern.fullmatch(topic) is not None):
        count += 1
        sys.stdout.write(json.dumps(_fields(held)) if args.json else _line(held))
        sys.stdout.write("\n")
    if not count and not args.json:
        sys.stdout.write(f"{flow.flow}: no record is in {flow.quarantine_topic}\n")
    return 0


def _line(held: Held) -> str:
    one = held.record
    return (
        f"{one.source} offset {one.offset}: moved {held.moved_at:%Y-%m-%d %H:%M:%S} UTC to "
        f"{held.place} offset {held.at}; key {_size(one.key)}, value {_size(one.value)}; "
        f"{one.code}: {one.reason}"
    )


def _fields(held: Held) -> dict[str, object]:
    one = held.record
    return {
        "partition": str(one.source),
        "offset": one.offset,
        "topic_id": one.topic_id,
        "timestamp": one.timestamp,
        "key_bytes": None if one.key is None else len(one.key),
        "value_bytes": None if one.value is None else len(one.value),
        "code": one.code,
        "reason": one.reason,
        "moved_at": held.moved_at.isoformat(timespec="milliseconds"),
        "quarantine": str(held.place),
        "quarantine_offset": held.at,
    }


def _size(data: bytes | None) -> str:
    return "none" if data is None else counted(len(data), "byte")
