"""`eos-mirror verify` as a user runs it, on Spark or in child processes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.mirror.conftest import Site

SPARK = {"verify_spark_master": "local[2]"}
CHILDREN: Mapping[str, str] = {}
"""Where ranges are compared: in a local Spark, or in child processes."""
ON_BOTH = pytest.mark.parametrize(
    "place",
    [
        pytest.param(SPARK, marks=[pytest.mark.spark, pytest.mark.long], id="spark"),
        pytest.param(CHILDREN, id="local"),
    ],
)

DIFFERENT = 3
"""Exit code: the copy has a difference."""


def verify(
    site: Site,
    *arguments: str,
    place: Mapping[str, str] = CHILDREN,
    change: Callable[[Path], Path] = lambda config: config,
    env: Mapping[str, str] | None = None,
) -> tuple[int, list[dict[str, Any]], str]:
    """Return exit code, topics of the report, and what was printed. Children have no Java."""
    if env is None and not place:
        env = {**os.environ, "PATH": "", "JAVA_HOME": ""}
    report = site.folder / "report.json"
    config = str(change(site.config(**place)))
    done = subprocess.run(
        [sys.executable, "-m", "eos_mirror.cli.main", "verify", config, "--json", str(report),
         *arguments],
        capture_output=True, text=True, timeout=120, check=False, env=env,
    )  # fmt: skip
    topics = json.loads(Path(report).read_text())[0]["topics"] if report.exists() else []
    return done.returncode, topics, done.stdout + done.stderr


def with_folder(name: str) -> dict[str, str]:
    """Return an environment in which Python loads the `sitecustomize.py` of a folder here."""
    folder = str(Path(__file__).with_name(name))
    path = os.pathsep.join([folder, *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    return {**os.environ, "PYTHONPATH": path}
