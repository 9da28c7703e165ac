"""
A short certification of our own lane with releases of Kafka: `python -m tests.versions 3.7 4.4`.

`3.7` is the release of both clusters, and `3.7:4.4` is a source of 3.7 and a target of 4.4. The
table is on stdout, and what pytest prints is on stderr. The exit code is 0 only if every test has
passed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic

from eos_mirror.errors import ConfigError
from tests.versions.report import Row, row_of, table_of
from tests.versions.selection import PAIRS, Pair

ROOT = Path(__file__).parents[2]
ENDS_WITHIN_S = 1_200
"""A run takes about four minutes on two cores."""

OPTIONS = ("-v", "--no-header", "--tb=short", "-p", "no:cacheprovider")
SETTINGS = ("-o", "junit_family=xunit1", "-o", "faulthandler_timeout=240")
"""
The later family of JUnit XML has no properties of a test. A test that waits inside librdkafka
cannot be interrupted, so that a stack is all that it leaves.
"""

COMPLETE = {0, 1}
"""Exit codes of pytest after all tests have run."""


def certified(pair: Pair) -> Row:
    """Run the tests with a pair of releases, in another process."""
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="versions-") as folder:
        xml = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", *OPTIONS, *SETTINGS, f"--junitxml={xml}"]
        try:
            done = subprocess.run(
                [*command, *pair.arguments],
                cwd=ROOT,
                env={**os.environ, **pair.environ},
                stdout=sys.stderr,
                timeout=ENDS_WITHIN_S,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            return Row(name=str(pair), failed=[str(exc)], seconds=monotonic() - began)
        seconds = monotonic() - began
        if done.returncode not in COMPLETE:
            failed = [f"pytest: exit code {done.returncode}"]
            return Row(name=str(pair), failed=failed, seconds=seconds)
        return row_of(str(pair), xml.read_text(), seconds=seconds)


def main() -> int:
    """Run the tests, print and write the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("pairs", nargs="*", metavar="RELEASE[:RELEASE]", help="all by default")
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    arguments = parser.parse_args()
    try:
        pairs = [Pair.parse(text) for text in arguments.pairs]
    except ConfigError as exc:
        parser.error(str(exc))
    rows: list[Row] = []
    for pair in pairs or PAIRS:
        sys.stderr.write(f"=== Kafka {pair}\n")
        rows.append(certified(pair))
        if arguments.output:
            arguments.output.write_text(table_of(rows), encoding="utf-8")
    sys.stdout.write(table_of(rows))
    return int(any(row.failed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
