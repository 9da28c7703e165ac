"""`eos-mirror adopt FILE A->B`: positions of MirrorMaker 2 or of the other mode, both ways."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from eos_mirror.cli.copied_rows import (
    CHANGES,
    copied_lines,
    copied_object,
    json_of,
    plan_code,
)
from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.flow import Flow
from eos_mirror.core.plural import counted
from eos_mirror.driver.first_contact import reach_clusters
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.driver.mm2_workers import Mm2, Mm2Workers, dedicated_mm2, source_connector
from eos_mirror.errors import ConfigError
from eos_mirror.operate.adopt import adopt
from eos_mirror.operate.copy_ends import CopiedPartition
from eos_mirror.operate.hand_over import HandedPartition, HandOver
from eos_mirror.operate.origins import AtLeastOnceOrigin, FileOrigin, GroupOrigin, Origin
from eos_mirror.operate.takeover import Takeover
from eos_mirror.settings.clients import mode_of
from eos_mirror.settings.model import FlowSettings

AT_LEAST_ONCE: Final = "mode:alo"
SOURCE: Final = "mode:source"
MM2: Final = "mm2"
GROUP, JSON = "group", "json"
QUIET_S: Final = 120.0

ASKED: Final = {AT_LEAST_ONCE: DeliveryMode.AT_LEAST_ONCE, SOURCE: DeliveryMode.SOURCE}
"""The mode that must be configured, by destination; for others, exactly once."""

CONFIGURED: Final = {
    DeliveryMode.EXACTLY_ONCE: "connector.type = sink and transaction.producer = true",
    DeliveryMode.AT_LEAST_ONCE: "connector.type = sink and transaction.producer = false",
    DeliveryMode.SOURCE: "connector.type = source",
}


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "adopt",
        help="continue the copies of MirrorMaker 2, hand them back, or switch the mode of a flow",
    )
    parser.add_argument("file", metavar="FILE", help="an mm2.properties")
    parser.add_argument("flow", metavar="A->B")
    _add_directions(parser)
    parser.add_argument(
        "--plan",
        action="store_true",
        help="say what would be done, and stop; not for --to with a mode of the flow",
    )
    parser.add_argument("--json", action="store_true", help="with --plan: print a JSON object")
    parser.add_argument(
        "--match-last",
        metavar="N",
        type=int,
        default=1000,
        help="compare N records at the end of each copy at most (default 1000)",
    )
    parser.add_argument(
        "--quiet",
        metavar="S",
        type=float,
        help="if the copies were written at least once, they must not grow for S seconds "
        f"(default {QUIET_S:g}; with mode:alo 0)",
    )
    _add_connect(parser)


def _add_directions(parser: argparse.ArgumentParser) -> None:
    """Add who copied until now, or who continues."""
    direction = parser.add_mutually_exclusive_group(required=True)
    direction.add_argument(
        "--from",
        dest="origin",
        type=_origin,
        metavar="ORIGIN",
        help="what copied until now: mm2, group:ID, json:FILE, mode:alo or mode:source; "
        "exactly once is configured",
    )
    direction.add_argument(
        "--to",
        dest="destination",
        choices=[MM2, AT_LEAST_ONCE, SOURCE],
        help="mm2: MirrorMaker 2 continues; mode:alo: the flow continues at least once, and "
        "transaction.producer = false is configured; mode:source: as a source connector, and "
        "connector.type = source is configured",
    )


def _origin(text: str) -> str:
    kind, _, value = text.partition(":")
    if text in {MM2, AT_LEAST_ONCE, SOURCE} or (kind in {GROUP, JSON} and value):
        return text
    kinds = "mm2, group:ID, json:FILE, mode:alo or mode:source"
    raise argparse.ArgumentTypeError(f"'{text}': expected {kinds}")


def _add_connect(parser: argparse.ArgumentParser) -> None:
    """Add what names a MirrorMaker 2 on a Connect cluster."""
    connect = parser.add_argument_group(
        "MirrorMaker 2 on a Connect cluster, for --from mm2 and --to mm2: give all four"
    )
    connect.add_argument("--connector", metavar="NAME", help="name of the MirrorSourceConnector")
    connect.add_argument("--connect-group", metavar="GROUP", help="group.id of the workers")
    connect.add_argument("--offsets-topic", metavar="TOPIC", help="offset.storage.topic")
    connect.add_argument("--config-topic", metavar="TOPIC", help="config.storage.topic")


def run(args: argparse.Namespace) -> int:
    """Run the verb and return the exit code; `main` prints errors."""
    settings = settings_of(args.file)
    flow = flow_named(settings, args.flow)
    asked = ASKED.get(args.destination, DeliveryMode.EXACTLY_ONCE)
    if mode_of(flow) is not asked:
        raise ConfigError(
            f"{flow.flow}: configured as {mode_of(flow).value}. Set {CONFIGURED[asked]} for the "
            f"flow, then adopt."
        )
    if args.quiet is None:
        args.quiet = 0.0 if args.origin == AT_LEAST_ONCE else QUIET_S
    if args.match_last < 1 or args.quiet < 0:
        raise ConfigError("--match-last must be at least 1, and --quiet at least 0")
    if args.plan and args.destination in ASKED:
        raise ConfigError("--plan is not for --to with a mode of the flow")
    origin = _origin_of(flow, args)
    reach_clusters(settings, [flow])
    if origin is not None:
        return _take_over(flow, origin, args)
    if args.destination == MM2:
        return _to_mm2(flow, args)
    adopted = adopt(flow, on_event=_nothing)
    if adopted.partitions is None:
        sys.stdout.write(f"{flow.flow} is {adopted.mode.value} already\n")
    else:
        carried = f"{counted(adopted.partitions, 'position')} carried over"
        sys.stdout.write(f"{flow.flow} is {adopted.mode.value} now: {carried}\n")
    return 0


def _origin_of(
    flow: FlowSettings, args: argparse.Namespace
) -> Callable[[FlowClusters], Origin] | None:
    """Return who made the copies; None if the flow continues in another way."""
    if args.origin is None:
        return None
    match args.origin.partition(":"):
        case ("mm2", _, _):
            mm2 = _mm2(flow.flow, args)
            return lambda clusters: Mm2Workers(flow, mm2, topics=clusters.target_topics)
        case ("group", _, group):
            return lambda clusters: GroupOrigin(flow, group, topics=clusters.source_topics)
        case ("json", _, path):
            file = FileOrigin(Path(path))
            return lambda _: file
    if args.origin == AT_LEAST_ONCE:
        return AtLeastOnceOrigin
    return lambda clusters: source_connector(flow, topics=clusters.target_topics)


def _take_over(
    flow: FlowSettings, origin: Callable[[FlowClusters], Origin], args: argparse.Namespace
) -> int:
    takeover = Takeover(flow, origin, match_last=args.match_last, on_event=_nothing)
    if args.plan:
        found = takeover.plan()
        text = copied_object(flow.flow, found) if args.json else _text(flow.flow, found)
        sys.stdout.write(text)
        return plan_code(found)
    adopted = takeover.run(
        quiet=timedelta(seconds=args.quiet),
        on_quiet=lambda: _say_quiet(flow.flow, args.quiet),
    )
    sys.stdout.write(_text(flow.flow, adopted))
    if adopted:
        sys.stdout.write(f"{flow.flow}: {counted(len(adopted), 'position')} taken over\n")
    return 0


def _text(flow: Flow, found: Sequence[CopiedPartition]) -> str:
    return copied_lines(found) or f"{flow}: nothing to take over\n"


def _say_quiet(flow: Flow, quiet_s: float) -> None:
    sys.stderr.write(
        f"eos-mirror: {flow}: the copies must stand still for {quiet_s:g} s (--quiet)\n"
    )


def _to_mm2(flow: FlowSettings, args: argparse.Namespace) -> int:
    hand_over = HandOver(flow, _mm2(flow.flow, args), on_event=_nothing)
    handed = hand_over.plan() if args.plan else hand_over.run()
    if args.plan and args.json:
        sys.stdout.write(json_of(flow.flow, map(_handed_row, handed)))
    elif handed:
        sys.stdout.write("".join(f"{line}\n" for line in map(_handed_line, handed)))
    else:
        sys.stdout.write(f"{flow.flow}: nothing to hand over\n")
    if args.plan:
        return CHANGES if handed else 0
    if handed:
        count = counted(len(handed), "position")
        sys.stdout.write(f"{flow.flow}: {count} handed over; MirrorMaker 2 may be started\n")
    return 0


def _handed_line(one: HandedPartition) -> str:
    stored = "no position" if one.stored is None else str(one.stored)
    return f"{one.source}: MirrorMaker 2 continues at {one.next_offset} (it had stored {stored})"


def _handed_row(one: HandedPartition) -> dict[str, Any]:
    return {
        "partition": str(one.source),
        "next_offset": one.next_offset,
        "stored": one.stored,
    }


def _mm2(flow: Flow, args: argparse.Namespace) -> Mm2:
    names = [args.connector, args.connect_group, args.offsets_topic, args.config_topic]
    if not any(names):
        return dedicated_mm2(flow)
    if not all(names):
        raise ConfigError(
            "--connector, --connect-group, --offsets-topic and --config-topic belong together: "
            "give all four for a Connect cluster, or none for MirrorMaker 2 in dedicated mode"
        )
    connector, group, offsets_topic, config_topic = names
    return Mm2(
        connector=connector, group=group, offsets_topic=offsets_topic, config_topic=config_topic
    )


def _nothing(name: str, fields: Mapping[str, Any]) -> None:
    """Ignore the event. The check of the next run reports the topics that are created here."""
