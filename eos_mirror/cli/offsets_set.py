"""`eos-mirror offsets set`: continues a partition at another offset, later or earlier."""

import argparse
import sys
from typing import Final

from eos_mirror.cli.confirmation import is_confirmed
from eos_mirror.cli.copied_rows import CHANGES
from eos_mirror.cli.skipped_records import described, listed
from eos_mirror.core.plural import counted
from eos_mirror.core.records import TopicPartition
from eos_mirror.operate.set_position import Move, PositionSetter
from eos_mirror.settings.model import FlowSettings

NOTHING_DONE: Final = 1


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add what no other action has."""
    parser.add_argument(
        "--accept-duplicates",
        action="store_true",
        help="go back although the copy holds records: it has records twice then",
    )


def act(flow: FlowSettings, args: argparse.Namespace) -> int:
    """Set a position and return the exit code; `main` prints errors."""
    source = TopicPartition(args.topic, args.partition)
    setter = PositionSetter(
        flow,
        source,
        args.to,
        accept_duplicates=args.accept_duplicates,
        on_event=lambda *_: None,
    )
    move = setter.plan()
    if move.start == move.end:
        return _finish(setter, move, is_plan=args.plan)
    if args.plan:
        sys.stdout.write(f"{_what(move, would='would')}\n{_records(setter, move)}")
        return CHANGES
    what = _what(move, would="will")
    if not args.yes and not is_confirmed(what, details=lambda: _records(setter, move)):
        sys.stderr.write("eos-mirror: nothing was set\n")
        return NOTHING_DONE
    done = setter.run(reason=args.reason)
    sys.stdout.write(f"{done.source}: the flow continues at {done.end}, not at {done.start}\n")
    return 0


def _finish(setter: PositionSetter, move: Move, *, is_plan: bool) -> int:
    """Start the topic if the command was interrupted when it had moved the position."""
    already = f"{move.source}: the flow continues at {move.end} already"
    if is_plan and setter.is_left_stopped():
        sys.stdout.write(f"{already}, and its topic would be started\n")
        return CHANGES
    if not is_plan and setter.finish():
        sys.stdout.write(f"{move.source} was set before; the flow continues at {move.end}\n")
    else:
        sys.stdout.write(f"{already}\n")
    return 0


def _what(move: Move, *, would: str) -> str:
    if move.skip is not None:
        return f"{described(move.skip)} {would} not be mirrored"
    again = f"{counted(move.start - move.end, 'offset')} from {move.end} to {move.start - 1}"
    copy = f"{would} have records twice" if move.has_records else "is empty"
    return f"{move.source}: {again} {would} be mirrored again; {move.remote} {copy}"


def _records(setter: PositionSetter, move: Move) -> str:
    """Return a line for each of the first records to skip; nothing if none is skipped."""
    return "" if move.skip is None else listed(setter.records(move.skip), move.skip)
