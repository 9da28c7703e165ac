"""What the verbs share by which an operator orders something about the topics of a flow."""

import argparse
import sys

from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.core.desired import ALL, Wanted
from eos_mirror.core.plural import counted
from eos_mirror.core.side import Side
from eos_mirror.driver.first_contact import reach_clusters
from eos_mirror.operate.desired import (
    DONE_WITHIN,
    Outcome,
    checked_pattern,
    matches_a_copy,
    order,
)
from eos_mirror.settings.model import FlowSettings

NOT_DONE = 1


def add_topics(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which topics of which flow."""
    parser.add_argument("file", metavar="FILE", help="an mm2.properties")
    parser.add_argument("flow", metavar="A->B")
    parser.add_argument(
        "--topics", metavar="REGEX", default=ALL, help="source topics (default: all)"
    )


def add_order(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a verb that says what should become of topics."""
    add_topics(parser)
    parser.add_argument("--reason", metavar="TEXT", default="", help="shown by `status`")


def reached_flow(args: argparse.Namespace) -> FlowSettings:
    """
    Return the flow that the arguments name. Its target answers.

    A pattern that matches nothing now is allowed, and noted on stderr: it may be a typing error.

    Raises:
        ConfigError: The file, the flow or the pattern is wrong, or the target does not answer.
    """
    settings = settings_of(args.file)
    flow = flow_named(settings, args.flow)
    checked_pattern(args.topics)
    reach_clusters(settings, [flow], needed=[Side.TARGET])
    if args.topics != ALL and not matches_a_copy(flow, args.topics):
        sys.stderr.write(
            f"eos-mirror: {flow.flow}: no topic that is mirrored now matches {args.topics}; later "
            f"ones may\n"
        )
    return flow


def give_order(args: argparse.Namespace, wanted: Wanted) -> int:
    """Order what should become of topics, and print what did; return the exit code."""
    outcome = order(reached_flow(args), wanted, topics=args.topics, reason=args.reason)
    what = f"{'all topics' if args.topics == ALL else args.topics} {wanted.value}"
    halted = counted(outcome.applied.partitions, "partition") if outcome.applied else ""
    return tell(
        args.flow,
        outcome,
        without_run=f"{what} as soon as the flow runs",
        done=f"{what}; {halted} paused or stopped now",
    )


def tell(flow: str, outcome: Outcome, *, without_run: str, done: str) -> int:
    """Print what became of an order; return the exit code."""
    if outcome.has_run and outcome.applied is None:
        sys.stderr.write(
            f"eos-mirror: {flow}: ordered, but the run has not reported in "
            f"{DONE_WITHIN.total_seconds():.0f} s that it is done. `eos-mirror status` shows the "
            f"state; the order stays.\n"
        )
        return NOT_DONE
    sys.stdout.write(f"{flow}: {done if outcome.has_run else without_run}\n")
    return 0
