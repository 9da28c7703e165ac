"""Commands of `eos-mirror` as a user runs them: exit codes, lines and answers."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.mirror.conftest import Site
from tests.mirror.toolbox import Mirror, mirror

CONFIGURATION, UNSAFE = 2, 4
"""Exit codes: the configuration is at fault; a start would not be safe."""


def refused(
    config: Path,
    *arguments: str,
    code: int,
    says: list[str],
    lines_count: int = 1,
    env: Mapping[str, str] | None = None,
) -> Mirror:
    """Run, and check the exit code, the number of lines, and that each has all these words."""
    with mirror(config, *arguments, env=env) as running:
        assert running.wait() == code, (running.errors, running.events)
    lines = [line for line in running.errors if line.startswith("eos-mirror: ")]
    assert len(lines) == lines_count, running.errors
    for line in lines:
        for words in says:
            assert words in line, f"{words!r} is not in {line}"
    assert "Traceback" not in "".join(running.errors), running.errors
    return running


def checked(config: Path) -> list[dict[str, Any]]:
    """Return the lines of `run --check`, which must succeed with nothing on stderr."""
    done = _run("run", str(config), "--check", check=True)
    assert not done.stderr, f"requests that are refused on purpose must be quiet: {done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(config: Path) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit code and the lines of `run --check`."""
    done = _run("run", str(config), "--check", check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def status(config: Path, *arguments: str) -> str:
    """Return what `status` prints. It must not fail; something may be wrong with the flow."""
    return status_and_code(config, *arguments)[0]


def status_and_code(config: Path, *arguments: str) -> tuple[str, int]:
    """Return what `status` prints, and its exit code: 1 if something is wrong with a flow."""
    done = _run("status", str(config), *arguments, check=False)
    assert done.stdout, done.stderr
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout, done.returncode


def quiet_status(config: Path, *arguments: str) -> str:
    """Return what `status` prints; nothing may be on stderr."""
    done = _run("status", str(config), *arguments, check=True)
    assert not done.stderr, done.stderr
    return done.stdout


def groups(config: Path) -> dict[str, dict[str, Any]]:
    """Return the objects of `status --groups`, by group."""
    lines = map(json.loads, quiet_status(config, "--groups", "--json").splitlines())
    return {one["group"]: one for one in lines}


def verb(
    name: str,
    config: Path,
    site: Site,
    *arguments: str,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run a verb on the flow of a site, which must succeed; return what it prints."""
    done = _run(name, str(config), str(site.flow), *arguments, check=False, env=env)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def offsets(site: Site, action: str, *arguments: str) -> tuple[int, str]:
    """Run an action of `offsets`; return its exit code and what it prints."""
    return _action("offsets", action, site, *arguments)


def quarantine(site: Site, action: str, *arguments: str) -> tuple[int, str]:
    """Run an action of `quarantine`; return its exit code and what it prints."""
    return _action("quarantine", action, site, *arguments)


def _action(verb: str, action: str, site: Site, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "eos_mirror.cli.main", verb, action]
    done = subprocess.run(
        [*command, str(site.config()), str(site.flow), *arguments],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def shown(site: Site) -> dict[str, dict[str, object]]:
    """Return what `offsets show --json` prints, by partition."""
    code, answer = offsets(site, "show", "--json")
    assert code == 0, answer
    return {one["partition"]: one for one in json.loads(answer)["partitions"]}


def fails(*arguments: str) -> tuple[int, list[str]]:
    """Run a verb that fails; return the exit code and what is on stderr."""
    code, _, errors = ends(*arguments)
    return code, errors


def ends(*arguments: str) -> tuple[int, str, list[str]]:
    """Run a verb; return the exit code, what it prints, and the lines on stderr."""
    done = _run(*arguments, check=False)
    return done.returncode, done.stdout, done.stderr.splitlines()


def _run(
    *arguments: str, check: bool, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "eos_mirror.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=check, env=env)
