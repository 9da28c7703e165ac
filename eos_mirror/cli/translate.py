"""`eos-mirror translate FILE A->B TOPIC PARTITION OFFSET`: translates an offset exactly."""

import argparse
import json
import sys
from typing import Any

from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.core.offset_map import BEFORE_START, Untranslatable
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.first_contact import reach_clusters
from eos_mirror.errors import ConfigError
from eos_mirror.operate.earlier_offsets import lower_bound
from eos_mirror.operate.translate import MapReader
from eos_mirror.settings import clients
from eos_mirror.settings.plugins import policy_of

UNKNOWN = 1
LOWER_BOUND = (
    "a lower bound, from the offset syncs of MirrorMaker 2: a reader that starts there reads some "
    "records again, and skips none"
)


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
    """Print the translated offset; return 0 if there is one, otherwise 1."""
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
    reader = MapReader(flow=flow.flow, client_config=clients.target_admin(flow))
    offsets = reader.load(remote)
    answer = offsets.reverse(args.offset) if args.reverse else offsets.translate(args.offset)
    is_exact = not isinstance(answer, Untranslatable)
    if answer is BEFORE_START and not args.reverse:
        source = TopicPartition(args.topic, args.partition)
        taken_over = reader.taken_over(remote)
        bound = lower_bound(flow, source, args.offset, taken_over=taken_over)
        answer = answer if bound is None else bound
    shown = answer.name if isinstance(answer, Untranslatable) else answer
    if args.json:
        fields = {"flow": args.flow, "remote": str(remote), "offset": args.offset}
        fields |= {"reverse": args.reverse, "translated": shown, "exact": is_exact}
        sys.stdout.write(json.dumps(fields) + "\n")
    else:
        sys.stdout.write(f"{shown}\n")
    if isinstance(answer, Untranslatable):
        return UNKNOWN
    if not is_exact:
        sys.stderr.write(f"eos-mirror: {LOWER_BOUND}\n")
    return 0
