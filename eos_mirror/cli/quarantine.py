"""`eos-mirror quarantine`: shows the records that the target refused, and replays them."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from eos_mirror.cli.confirmation import is_confirmed
from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.core.desired import ALL
from eos_mirror.core.plural import counted
from eos_mirror.core.side import Side
from eos_mirror.driver.first_contact import reach_clusters
from eos_mirror.operate.desired import checked_pattern
from eos_mirror.operate.quarantine import Held, quarantined
from eos_mirror.operate.replay import Replayer
from eos_mirror.operate.replay_plan import Verdict
from eos_mirror.settings.model import FlowSettings

NOT_ALL: Final = 1
CHANGES: Final = 5
"""Exit code of `--plan` if there is something to do."""


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "quarantine", help="show the records that the target refused, or replay them"
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser("list", help="print a line for each record")
    replay = actions.add_parser("replay", help="append records to their copies")
    for action in (show, replay):
        action.add_argument("file", metavar="FILE", help="an mm2.properties")
        action.add_argument("flow", metavar="A->B")
        action.add_argument(
            "--topics", metavar="REGEX", default=ALL, help="source topics (default: all)"
        )
    show.add_argument("--json", action="store_true", help="print a JSON object for each record")
    show.set_defaults(act=_list)
    replay.add_argument("--reason", metavar="TEXT", default="", help="kept in the ledger")
    replay.add_argument("--plan", action="store_true", help="say what would be done, and stop")
    replay.add_argument("--yes", action="store_true", help="replay without asking")
    replay.set_defaults(act=_replay)


def run(args: argparse.Namespace) -> int:
    """Perform the action and return the exit code; `main` prints errors."""
    settings = settings_of(args.file)
    flow = flow_named(settings, args.flow)
    pattern = re.compile(checked_pattern(args.topics))
    reads = {Side.TARGET} if args.act is _list else {Side.SOURCE, Side.TARGET}
    reach_clusters(settings, [flow], needed=reads)
    code: int = args.act(flow, args, lambda topic: pattern.fullmatch(topic) is not None)
    return code


def _list(flow: FlowSettings, args: argparse.Namespace, is_wanted: Callable[[str], bool]) -> int:
    count = 0
    for held in quarantined(flow, is_wanted):
        count += 1
        sys.stdout.write(json.dumps(_fields(held)) if args.json else _line(held))
        sys.stdout.write("\n")
    if not count and not args.json:
        sys.stdout.write(f"{flow.flow}: no record is in {flow.quarantine_topic}\n")
    return 0


def _replay(flow: FlowSettings, args: argparse.Namespace, is_wanted: Callable[[str], bool]) -> int:
    replayer = Replayer(flow, is_wanted)
    for topic in () if args.plan else replayer.finish():
        sys.stdout.write(f"{topic} was left stopped by an interrupted replay; it is started\n")
    plan = replayer.plan()
    if not plan:
        sys.stdout.write(f"{flow.flow}: no record waits to be replayed\n")
        return 0
    count = sum(not one.refusal for one in plan)
    if args.plan or not count:
        sys.stdout.write(_verdicts(plan, "would be replayed"))
        return CHANGES if count else NOT_ALL
    what = f"{counted(count, 'record')} will be appended to their copies, after later records"
    details = partial(_verdicts, plan, "will be replayed")
    if not args.yes and not is_confirmed(what, details=details):
        sys.stderr.write("eos-mirror: nothing was replayed\n")
        return NOT_ALL
    code = 0
    for one in replayer.run(reason=args.reason):
        sys.stdout.write(_verdicts([one], "replayed"))
        code = NOT_ALL if one.refusal else code
    return code


def _verdicts(verdicts: Sequence[Verdict], what: str) -> str:
    """Return a line for each record."""
    return "".join(
        f"{one.key.source} offset {one.key.offset}: "
        f"{f'not replayed: {one.refusal}' if one.refusal else what}\n"
        for one in verdicts
    )


def _line(held: Held) -> str:
    one, place = held.record, held.place
    replayed = ", replayed" if held.is_replayed else ""
    return (
        f"{one.source} offset {one.offset}: moved {held.moved_at:%Y-%m-%d %H:%M:%S} UTC to "
        f"partition {place.partition} offset {place.offset}{replayed}; key {_size(one.key)}, "
        f"value {_size(one.value)}; {one.code}: {one.reason}"
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
        "quarantine_partition": held.place.partition,
        "quarantine_offset": held.place.offset,
        "replayed": held.is_replayed,
    }


def _size(data: bytes | None) -> str:
    return "none" if data is None else counted(len(data), "byte")
