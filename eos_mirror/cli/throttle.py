"""`eos-mirror throttle FILE A->B`: limits how fast topics of a flow are mirrored."""

import argparse
from typing import Any

from eos_mirror.cli.topic_orders import add_order, reached_flow, tell
from eos_mirror.core.desired import ALL
from eos_mirror.core.throttles import Limit
from eos_mirror.errors import ConfigError
from eos_mirror.operate.desired import throttle


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser("throttle", help="limit how fast topics of a flow are mirrored")
    add_order(parser)
    parser.add_argument(
        "--bytes-per-second", metavar="N", type=_rate, help="of values: keys do not count"
    )
    parser.add_argument("--records-per-second", metavar="N", type=_rate)
    parser.add_argument("--off", action="store_true", help="lift the limits")


def run(args: argparse.Namespace) -> int:
    """Limit topics, or lift their limits; return 0 when every task applies it."""
    limit = Limit(bytes_per_s=args.bytes_per_second, records_per_s=args.records_per_second)
    if bool(limit) == args.off:
        raise ConfigError("throttle: give --bytes-per-second, --records-per-second, or --off")
    outcome = throttle(reached_flow(args), limit, topics=args.topics, reason=args.reason)
    which = "all topics together" if args.topics == ALL else f"each topic of {args.topics}"
    done = f"{which}: {limit}"
    if args.off and args.topics == ALL:
        done = "every limit of the flow is lifted, also those of single topics"
    return tell(args.flow, outcome, without_run=f"{done} as soon as the flow runs", done=done)


def _rate(text: str) -> float:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text}: not a whole number above 0")
    return float(text)
