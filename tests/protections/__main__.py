"""
Switch every protection off, one after the other, and check that its test fails:
`python -m tests.protections`.

Only a copy of the project is changed. The exit code is 0 only if every test failed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from eos_mirror import __version__
from tests.protections.table import Protection, load_protections

ROOT = Path(__file__).parents[2]
PARTS = ("eos_mirror", "tests", "benchmarks", "config", "pyproject.toml")
ENDS_WITHIN_S = 400
FAILED = 1
SHOWN = 140


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    The result of one test without its protection.

    Attributes:
        seconds: Time until the test failed, including the start of brokers.
        reason: First line of the failure; empty if the test passed.
    """

    protection: Protection
    seconds: float
    reason: str


@contextmanager
def switched_off(protection: Protection, project: Path) -> Iterator[None]:
    """Remove the protection from the project during the block."""
    path = project / protection.path
    whole = path.read_text()
    path.write_text(protection.applied_to(whole))
    try:
        yield
    finally:
        path.write_text(whole)


def watch_fail(protection: Protection, project: Path) -> Outcome:
    """Run the test of a protection without the protection."""
    chosen = {"EOS_MIRROR_TEST_DATA_PATH": protection.data_path} if protection.data_path else {}
    began = monotonic()
    with switched_off(protection, project):
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=short"),
                *(
                    "-m",
                    "",
                    "-p",
                    "no:cacheprovider",
                    f"--timeout={ENDS_WITHIN_S}",
                    protection.test,
                ),
            ],
            cwd=project,
            env={
                **os.environ,
                "PYTHONPATH": str(project),
                "PYTHONDONTWRITEBYTECODE": "1",
                **chosen,
            },
            capture_output=True,
            text=True,
            check=False,
        )
    is_failure = done.returncode == FAILED and re.search(r"^FAILED ", done.stdout, re.MULTILINE)
    return Outcome(
        protection=protection,
        seconds=monotonic() - began,
        reason=reason_of(done.stdout) if is_failure else "",
    )


def reason_of(output: str) -> str:
    """Return the first line of a failure."""
    said = re.findall(r"^E +(.*)$", output, re.MULTILINE)
    return str(said[0])[:SHOWN] if said else "failed"


def table_of(outcomes: list[Outcome]) -> str:
    """Return the Markdown table of the outcomes."""
    lines = [
        "| row | `data.path` | without the protection, the mirror | the test that fails | after |",
        "|---|---|---|---|---|",
    ]
    for one in outcomes:
        name = one.protection.test.rpartition("::")[2]
        after = f"{one.seconds:.0f} s" if one.reason else "**not seen to fail**"
        row, path, off = one.protection.row, one.protection.data_path, one.protection.off
        lines.append(f"| {row} | {path} | {off} | `{name}` | {after} |")
    caught = sum(bool(one.reason) for one in outcomes)
    lines += ["", f"{caught} of {len(outcomes)} seen to fail. Version {__version__}."]
    return "\n".join(lines)


def main() -> int:
    """Run the tests, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.protections", description=__doc__)
    parser.add_argument("--rows", default="", help="such as C3,G7; all by default")
    parser.add_argument("--json", type=Path, help="also write the outcomes to this file")
    args = parser.parse_args()
    rows = {row for row in args.rows.split(",") if row}
    protections = load_protections()
    if unknown := rows - {one.row for one in protections}:
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="protections-") as folder:
        project = Path(folder)
        for part in PARTS:
            here = ROOT / part
            if here.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(here, project / part, ignore=ignored)
            else:
                shutil.copy(here, project / part)
        for protection in protections:
            if rows and protection.row not in rows:
                continue
            outcome = watch_fail(protection, project)
            outcomes.append(outcome)
            said = outcome.reason or "NOT SEEN TO FAIL: it passed, or it could not run"
            sys.stderr.write(f"{protection.name:11} {outcome.seconds:5.0f} s  {said}\n")
    sys.stdout.write(table_of(outcomes) + "\n")
    if args.json is not None:
        found = {one.protection.name: [one.seconds, one.reason] for one in outcomes}
        args.json.write_text(json.dumps(found, indent=1))
    return 0 if all(one.reason for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
