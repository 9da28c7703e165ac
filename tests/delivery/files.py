"""The files that are delivered beside the program, and the tools that check them."""

import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from eos_mirror.driver.chores import CHORE_ENDS
from eos_mirror.driver.ledger import LAST_WORDS
from eos_mirror.runtime.supervisor import Patience
from eos_mirror.settings.load import load_settings

ROOT: Final = Path(__file__).parents[2]
CONFIG: Final = ROOT / "config"


def yaml_of(text: str) -> Any:
    """Return the content of a YAML document; skip the test if PyYAML is not installed."""
    return pytest.importorskip("yaml", reason="PyYAML is not installed").safe_load(text)


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file of one document."""
    return yaml_of(path.read_text(encoding="utf-8"))


def run_tool(name: str, *arguments: str | Path) -> str:
    """Run a program and return its output; skip the test if it is not installed."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def longest_stop() -> timedelta:
    """Return how long a run of one flow waits for its parts after SIGTERM, one after the other."""
    tasks = load_settings(CONFIG / "mm2.properties").shutdown_timeout
    checkpoints, heartbeats, chores = Patience().shutdown, CHORE_ENDS, 2 * CHORE_ENDS
    return tasks + checkpoints + heartbeats + chores + LAST_WORDS
