"""`eos-mirror offsets`: shows, skips, sets, resets and rebuilds positions."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from eos_mirror.cli import offsets_set
from eos_mirror.cli.confirmation import is_confirmed
from eos_mirror.cli.copied_rows import CHANGES, copied_lines, plan_code
from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.cli.skipped_records import described, listed
from eos_mirror.core.desired import ALL
from eos_mirror.core.plural import counted
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.first_contact import reach_clusters
from eos_mirror.errors import ConfigError
from eos_mirror.operate.desired import checked_pattern
from eos_mirror.operate.offsets import PartitionOffsets, flow_offsets
from eos_mirror.operate.rebuild import MapOrigin
from eos_mirror.operate.skip import Skipper
from eos_mirror.operate.takeover import Takeover
from eos_mirror.operate.topic_reset import Copy, TopicReset
from eos_mirror.settings.model import FlowSettings

NOTHING_DONE = 1

COLUMNS = ("partition", "next offset", "stable end", "end", "lag", "map from", "written by")


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "offsets",
        help="show, skip, set, reset or find the positions of a flow",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser("show", help="print the offsets of each partition")
    _add_flow(show)
    show.add_argument("--topics", metavar="REGEX", default=ALL, help="source topics (default: all)")
    show.add_argument("--json", action="store_true", help="print a JSON object")
    show.set_defaults(act=_show)
    skip = actions.add_parser("skip", help="continue a partition at a later offset")
    to = actions.add_parser("set", help="continue a partition at another offset")
    for action in (skip, to):
        _add_position(action)
    offsets_set.add_flags(to)
    reset = actions.add_parser("reset", help="delete a copy, and mirror the topic again")
    _add_flow(reset)
    reset.add_argument("topic", metavar="TOPIC", help="name on the source")
    rebuild = actions.add_parser("rebuild", help="find positions again that the target has lost")
    _add_flow(rebuild)
    rebuild.add_argument(
        "--match-last",
        metavar="N",
        type=int,
        default=1000,
        help="compare N records at the end of each copy at most (default 1000)",
    )
    for action in (skip, to, reset):
        action.add_argument("--reason", metavar="TEXT", default="", help="kept in the ledger")
    for action, what in ((skip, "skip"), (to, "set"), (reset, "delete"), (rebuild, "write")):
        action.add_argument("--plan", action="store_true", help="say what would be done, and stop")
        action.add_argument("--yes", action="store_true", help=f"{what} without asking")
    for action, act in ((skip, _skip), (to, offsets_set.act), (reset, _reset), (rebuild, _rebuild)):
        action.set_defaults(act=act)


def _add_position(parser: argparse.ArgumentParser) -> None:
    _add_flow(parser)
    parser.add_argument("topic", metavar="TOPIC", help="name on the source")
    parser.add_argument("partition", metavar="PARTITION", type=int)
    parser.add_argument(
        "--to", metavar="OFFSET", type=int, required=True, help="the first offset to mirror again"
    )


def _add_flow(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="an mm2.properties")
    parser.add_argument("flow", metavar="A->B")


def run(args: argparse.Namespace) -> int:
    """Perform the action and return the exit code; `main` prints errors."""
    settings = settings_of(args.file)
    flow = flow_named(settings, args.flow)
    if args.act is _show:
        checked_pattern(args.topics)
    reach_clusters(settings, [flow])
    code: int = args.act(flow, args)
    return code


def _show(flow: FlowSettings, args: argparse.Namespace) -> int:
    found = flow_offsets(flow, topics=args.topics)
    if args.json:
        document = {"flow": str(flow.flow), "partitions": [_fields(one) for one in found]}
        sys.stdout.write(json.dumps(document) + "\n")
    elif found:
        sys.stdout.write(_table([COLUMNS, *map(_cells, found)]))
    else:
        sys.stdout.write(f"{flow.flow}: no partitions\n")
    return 0


def _fields(one: PartitionOffsets) -> Mapping[str, object]:
    return {
        "partition": str(one.source),
        "remote": str(one.remote),
        "next_offset": one.next_offset,
        "stable_end": one.stable,
        "end": one.end,
        "lag": one.lag,
        "map_start": one.map_start,
        "transactional_id": None if one.claim is None else one.claim.transactional_id,
        "host": None if one.claim is None else one.claim.host,
    }


def _cells(one: PartitionOffsets) -> Sequence[str]:
    numbers = (one.next_offset, one.stable, one.end, one.lag, one.map_start)
    writer = "-" if one.claim is None else f"{one.claim.transactional_id} ({one.claim.host})"
    return (str(one.source), *("-" if n is None else str(n) for n in numbers), writer)


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines; numbers are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *numbers, last in rows:
        aligned = [one.rjust(width) for one, width in zip(numbers, widths[1:], strict=False)]
        lines.append("  ".join([first.ljust(widths[0]), *aligned, last]).rstrip())
    return "".join(f"{line}\n" for line in lines)


def _skip(flow: FlowSettings, args: argparse.Namespace) -> int:
    source = TopicPartition(args.topic, args.partition)
    skipper = Skipper(flow, source, args.to, on_event=lambda *_: None)
    if not args.plan and skipper.finish():
        sys.stdout.write(f"{source} was skipped before; the flow continues at {args.to}\n")
        return 0
    plan = skipper.plan()
    if args.plan:
        sys.stdout.write(
            f"{described(plan)} would not be mirrored\n{listed(skipper.records(plan), plan)}"
        )
        return CHANGES
    what = f"{described(plan)} will not be mirrored"
    if not args.yes and not is_confirmed(what, details=lambda: listed(skipper.records(plan), plan)):
        sys.stderr.write("eos-mirror: nothing was skipped\n")
        return NOTHING_DONE
    done = skipper.run(reason=args.reason)
    sys.stdout.write(f"{described(done)} skipped; the flow continues at {done.end}\n")
    return 0


def _reset(flow: FlowSettings, args: argparse.Namespace) -> int:
    reset = TopicReset(flow, args.topic, on_event=lambda *_: None)
    plan = reset.plan()
    where = f"topic {plan.remote} on {flow.flow.target}"
    if args.plan:
        sys.stdout.write(
            f"{where} would be deleted ({_size(plan)}); its consumers must start again\n"
        )
        return CHANGES
    if not args.yes and not is_confirmed(f"{where} will be deleted ({_size(plan)})"):
        sys.stderr.write("eos-mirror: nothing was deleted\n")
        return NOTHING_DONE
    reset.run(reason=args.reason)
    sys.stdout.write(f"{where} is deleted; the next run mirrors {plan.topic} again\n")
    return 0


def _rebuild(flow: FlowSettings, args: argparse.Namespace) -> int:
    if args.match_last < 1:
        raise ConfigError("--match-last must be at least 1")
    rebuild = Takeover(
        flow,
        partial(MapOrigin, flow),
        match_last=args.match_last,
        on_event=lambda *_: None,
    )
    found = rebuild.plan()
    if not found:
        sys.stdout.write(f"{flow.flow}: no position is lost\n")
        return 0
    if args.plan:
        sys.stdout.write(copied_lines(found))
        return plan_code(found)
    what = f"{counted(len(found), 'position')} will be written, and the offset map begins there"
    if not args.yes and not is_confirmed(what, details=lambda: copied_lines(found)):
        sys.stderr.write("eos-mirror: nothing was written\n")
        return NOTHING_DONE
    done = rebuild.run(quiet=timedelta(0), on_quiet=lambda: None)
    sys.stdout.write(f"{copied_lines(done)}{flow.flow}: {counted(len(done), 'position')} written\n")
    return 0


def _size(copy: Copy) -> str:
    return f"{counted(copy.partitions, 'partition')}, {counted(copy.end, 'offset')}"
