"""`eos-mirror retry FILE A->B`: tries stopped partitions of a running flow again, now."""

import argparse
import sys
from typing import Any

from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.cli.pause import NOT_DONE, not_done
from eos_mirror.core.desired import ALL
from eos_mirror.core.side import Side
from eos_mirror.driver.first_contact import reach_clusters
from eos_mirror.operate.desired import checked_pattern, retry


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser("retry", help="try stopped partitions of a flow again, now")
    parser.add_argument("file", metavar="FILE", help="an mm2.properties")
    parser.add_argument("flow", metavar="A->B")
    parser.add_argument(
        "--topics", metavar="REGEX", default=ALL, help="source topics (default: all)"
    )


def run(args: argparse.Namespace) -> int:
    """Ask the run to try again; return 0 when it does."""
    settings = settings_of(args.file)
    flow = flow_named(settings, args.flow)
    topics = checked_pattern(args.topics)
    reach_clusters(settings, [flow], needed=[Side.TARGET])
    outcome = retry(flow, topics=topics)
    if not outcome.has_run:
        sys.stdout.write(f"{args.flow}: no run mirrors it; the next one tries everything\n")
        return 0
    if outcome.applied is None:
        sys.stderr.write(not_done(args.flow))
        return NOT_DONE
    sys.stdout.write(f"{args.flow}: stopped partitions are tried again; see `eos-mirror status`\n")
    return 0
