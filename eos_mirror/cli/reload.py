"""`eos-mirror reload FILE [A->B]`: lets running flows read their configuration file now."""

import argparse
from typing import Any

from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.cli.topic_orders import tell
from eos_mirror.core.side import Side
from eos_mirror.driver.first_contact import reach_clusters
from eos_mirror.operate.desired import reload


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser("reload", help="let running flows read their file now")
    parser.add_argument("file", metavar="FILE", help="an mm2.properties")
    parser.add_argument("flow", metavar="A->B", nargs="?", help="only this flow")


def run(args: argparse.Namespace) -> int:
    """Ask the run of each flow; return 0 when all have read their files."""
    settings = settings_of(args.file)
    flows = [flow_named(settings, args.flow)] if args.flow else settings.flows
    reach_clusters(settings, flows, needed=[Side.TARGET])
    return max(
        tell(
            str(one.flow),
            reload(one),
            without_run="no run mirrors it; the next one reads the file",
            done="its run has read its file again; its log names keys that wait for a restart",
        )
        for one in flows
    )
