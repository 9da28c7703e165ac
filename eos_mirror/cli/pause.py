"""`eos-mirror pause FILE A->B`: pauses topics of a flow, also if it does not run."""

import argparse
import sys
from typing import Any

from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.core.desired import ALL, Wanted
from eos_mirror.core.plural import counted
from eos_mirror.core.side import Side
from eos_mirror.driver.first_contact import reach_clusters
from eos_mirror.operate.desired import DONE_WITHIN, checked_pattern, order

NOT_DONE = 1


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    add_arguments(subparsers.add_parser("pause", help="pause topics of a flow"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a verb that orders something about topics."""
    parser.add_argument("file", metavar="FILE", help="an mm2.properties")
    parser.add_argument("flow", metavar="A->B")
    parser.add_argument(
        "--topics", metavar="REGEX", default=ALL, help="source topics (default: all)"
    )
    parser.add_argument("--reason", metavar="TEXT", default="", help="shown by `status`")


def run(args: argparse.Namespace) -> int:
    """Pause topics; return 0 when nothing of them is read any more."""
    return give(args, Wanted.PAUSED)


def not_done(flow: str) -> str:
    """Return the line that says that a run has not done in time what was ordered."""
    return (
        f"eos-mirror: {flow}: ordered, but the run has not reported in "
        f"{DONE_WITHIN.total_seconds():.0f} s that it is done. `eos-mirror status` shows the "
        f"state; the order stays.\n"
    )


def give(args: argparse.Namespace, wanted: Wanted) -> int:
    """Give an order, and print what became of it; return the exit code."""
    settings = settings_of(args.file)
    flow = flow_named(settings, args.flow)
    topics = checked_pattern(args.topics)
    reach_clusters(settings, [flow], needed=[Side.TARGET])
    outcome = order(flow, wanted, topics=topics, reason=args.reason)
    what = "all topics" if args.topics == ALL else args.topics
    if not outcome.has_run:
        sys.stdout.write(f"{args.flow}: {what} {wanted.value} as soon as the flow runs\n")
        return 0
    if outcome.applied is None:
        sys.stderr.write(not_done(args.flow))
        return NOT_DONE
    rest = counted(outcome.applied.partitions, "partition")
    sys.stdout.write(f"{args.flow}: {what} {wanted.value}; {rest} paused or stopped now\n")
    return 0
