"""
Exactly once under a seeded nemesis: `python -m tests.chaos --seed N --minutes M`.

Exit code 0 only if everything holds.
"""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.chaos.faults import KINDS
from tests.chaos.session import AT_LEAST_ONCE, EXACTLY_ONCE, Options, run


def main(arguments: list[str] | None = None) -> int:
    """Run once, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--runtime", choices=("local", "spark"), default="local")
    parser.add_argument("--mode", choices=(EXACTLY_ONCE, AT_LEAST_ONCE), default=EXACTLY_ONCE)
    parser.add_argument("--data-path", choices=("auto", "client"), default="auto")
    parser.add_argument(
        "--transactions",
        type=int,
        choices=(1, 2),
        default=2,
        help="transaction.version of the target",
    )
    parser.add_argument("--quarantine", action="store_true", help="with errors.tolerance = all")
    parser.add_argument("--handler", action="store_true", help="with a message handler, too")
    parser.add_argument("--broken", choices=("naive", "stable-only"))
    parser.add_argument("--replication", type=int, choices=(1, 3), default=3)
    parser.add_argument("--faults", default="", help=f"comma-separated: {', '.join(KINDS)}")
    parser.add_argument("--json", type=Path, help="also write the report to this file")
    parser.add_argument("--keep", type=Path, help="folder for events, faults and broker logs")
    args = parser.parse_args(arguments)
    kinds = [name for name in args.faults.split(",") if name]
    if unknown := set(kinds) - KINDS.keys():
        parser.error(f"no such fault: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    if args.broken and args.mode == AT_LEAST_ONCE:
        parser.error("--broken breaks fencing, and at-least-once has none")
    options = Options(
        seed=args.seed,
        minutes=args.minutes,
        runtime=args.runtime,
        mode=args.mode,
        data_path=args.data_path,
        transactions=args.transactions,
        quarantine=args.quarantine or args.handler,
        handler=args.handler,
        broken=args.broken,
        replication=args.replication,
        kinds=kinds,
        keep=args.keep,
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # heal, clean up and exit
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        report = run(options, Path(folder))
    sys.stdout.write(f"{report}\n")
    if args.json is not None:
        args.json.write_text(report.to_json())
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())
