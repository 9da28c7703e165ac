"""`eos-mirror translate FILE A->B TOPIC PARTITION OFFSET`: translates an offset exactly."""

import argparse
import json
import sys
from typing import Any

from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.core.offset_map import Untranslatable
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.first_contact import reach_clusters
from eos_mirror.errors import ConfigError
from eos_mirror.operate.translate import MapReader
from eos_mirror.settings import clients
from eos_mirror.settings.plugins import policy_of

UNKNOWN = 1


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "translate", help="translate a source offset to the target, or back"
    )
    parser.add_argument("file", metavar="FILE", help="an mm2.properties")
    parser.add_argument("flow", metavar="A->B")
    parser.add_argument("topic", metavar="TOPIC", help="name on the source")
    parser.add_argument("partition", metavar="PARTITION", type=int)
    parser.add_argument("offset", metavar="OFFSET", type=int)
    parser.add_argument(
        "--reverse", action="store_true", help="translate from the target to the source"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the translated offset; return 0 if it is exact, 1 if there is none."""
    settings = settings_of(args.file)
    flow = flow_named(settings, args.flow)
    remote = TopicPartition(
        policy_of(flow).format_remote_topic(flow.flow.source, args.topic), args.partition
    )
    if not flow.exactly_once:
        raise ConfigError(
            f"{flow.flow}: at least once keeps no exact offset map (transaction.producer = false)"
        )
    reach_clusters(settings, [flow], needed=[Side.TARGET])
    offsets = MapReader(flow=flow.flow, client_config=clients.target_admin(flow)).load(remote)
    answer = offsets.reverse(args.offset) if args.reverse else offsets.translate(args.offset)
    known = not isinstance(answer, Untranslatable)
    shown = answer.name if isinstance(answer, Untranslatable) else answer
    if args.json:
        fields = {"flow": args.flow, "remote": str(remote), "offset": args.offset}
        sys.stdout.write(
            json.dumps({**fields, "reverse": args.reverse, "translated": shown}) + "\n"
        )
    else:
        sys.stdout.write(f"{shown}\n")
    return 0 if known else UNKNOWN
