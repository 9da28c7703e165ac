"""`eos-mirror adopt FILE A->B`: carries positions over from the other delivery mode."""

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.plural import counted
from eos_mirror.driver.first_contact import reach_clusters
from eos_mirror.errors import ConfigError
from eos_mirror.operate.adopt import adopt
from eos_mirror.settings.clients import mode_of

AT_LEAST_ONCE = "mode:alo"


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "adopt", help="switch a flow between exactly once and at least once"
    )
    parser.add_argument("file", metavar="FILE", help="an mm2.properties")
    parser.add_argument("flow", metavar="A->B")
    direction = parser.add_mutually_exclusive_group(required=True)
    direction.add_argument(
        "--from",
        dest="origin",
        choices=[AT_LEAST_ONCE],
        help="from at-least-once to exactly-once: transaction.producer = true is configured",
    )
    direction.add_argument(
        "--to",
        dest="destination",
        choices=[AT_LEAST_ONCE],
        help="from exactly-once to at-least-once: transaction.producer = false is configured",
    )


def run(args: argparse.Namespace) -> int:
    """Run the verb and return the exit code; `main` prints errors."""
    settings = settings_of(args.file)
    flow = flow_named(settings, args.flow)
    asked = DeliveryMode.AT_LEAST_ONCE if args.destination else DeliveryMode.EXACTLY_ONCE
    if mode_of(flow) is not asked:
        value = "true" if asked is DeliveryMode.EXACTLY_ONCE else "false"
        raise ConfigError(
            f"{flow.flow}: configured as {mode_of(flow).value}. Set transaction.producer = {value} "
            f"for the flow, then adopt."
        )
    reach_clusters(settings, [flow])
    adopted = adopt(flow, on_event=_nothing)
    if adopted.partitions is None:
        sys.stdout.write(f"{flow.flow} is {adopted.mode.value} already\n")
    else:
        carried = f"{counted(adopted.partitions, 'position')} carried over"
        sys.stdout.write(f"{flow.flow} is {adopted.mode.value} now: {carried}\n")
    return 0


def _nothing(name: str, fields: Mapping[str, Any]) -> None:
    """Ignore the event. The check of the next run reports the topics that are created here."""
