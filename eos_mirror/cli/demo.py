"""
`eos-mirror demo`: shows a mirror on two real Kafka clusters that exist only for the demo.

stderr shows the steps, stdout the resulting table.
"""

import argparse
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

from eos_mirror.demo.acts import RECORDS, play
from eos_mirror.demo.outcome import READ_ON
from eos_mirror.demo.story import Story
from eos_mirror.errors import MirrorError

DONE, FAILED = 0, 1


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "demo", help="two real clusters, a kill -9 inside a transaction, and a proof"
    )
    parser.add_argument(
        "--runtime",
        choices=("spark", "local"),
        default="spark",
        help="where the tasks run (default spark); local is quicker",
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep the folder with configuration, events and output"
    )
    parser.add_argument("--records", type=int, default=RECORDS, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """
    Run the demo.

    Returns:
        Exit code: 0 if the proof holds and the kill hit an open transaction, else 1.

    Raises:
        MirrorError: The demo could not be completed. Nothing is left running.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: clean up
    folder = Path(tempfile.mkdtemp(prefix="eos-mirror-demo-"))
    story = Story()
    try:
        outcome = play(folder, story, runtime=args.runtime, records_count=args.records)
    except TimeoutError as exc:
        raise MirrorError(str(exc)) from exc
    except KeyboardInterrupt:
        story.tell("interrupted")
        return FAILED
    finally:
        signal.signal(signal.SIGTERM, before)
        if args.keep:
            story.tell(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{outcome.table()}\n\n{outcome.verdict()}\n{READ_ON}")
    return DONE if outcome.is_good else FAILED
