"""A mirror on a terminal, and its status: what a person sees, beside what a program reads."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.pseudo_terminal import PseudoTerminal, pseudo_terminal
from tests.mirror.command_line import status
from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
"""A slow first catch-up has a progress bar between the lines."""

GREEN, RESET = "\033[32m", "\033[0m"


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[PseudoTerminal]:
    """A terminal with colours."""
    with pseudo_terminal(monkeypatch) as opened:
        yield opened


@contextmanager
def on(screen: PseudoTerminal, *command: str | Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a verb on a terminal, where Ctrl-C ends it; it does not outlive the block."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job may ignore it
    with subprocess.Popen(
        [sys.executable, "-m", "eos_mirror.cli.main", *command],
        stdin=screen.fd, stdout=screen.fd, stderr=screen.fd,
    ) as process:  # fmt: skip
        signal.signal(signal.SIGINT, before)
        try:
            yield process
        finally:
            process.kill()


def test_the_status_of_a_flow_has_a_table_on_a_terminal_and_lines_elsewhere(
    site: Site, screen: PseudoTerminal
) -> None:
    """The same numbers in both, and the same exit code."""
    site.produce(40)
    config = site.config()
    with mirror(config) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        said = status(config)
        with on(screen, "status", config) as process:
            assert process.wait(60) == 0

    assert f"  {site.topic}: 4 partitions, lag 0: 4 mirroring\n" in said
    text = screen.text()
    assert text.startswith(f"{site.flow}: {GREEN}mirroring{RESET}, exactly-once, 4 partitions, lag")
    (row,) = [one.split() for one in text.splitlines() if one.startswith(f"  {site.topic}")]
    assert row == [site.topic, "4", "0", f"{GREEN}4", f"mirroring{RESET}"]


def test_a_watched_status_is_refreshed_until_ctrl_c(site: Site, screen: PseudoTerminal) -> None:
    """It shows the mirror when it starts, and the terminal is as before when it ends."""
    site.produce(40)
    config = site.config()
    with on(screen, "status", config, "--watch", "1") as process:
        screen.wait_for("not running")
        with mirror(config) as running:
            running.wait_for("ready")
            screen.wait_for(f"{GREEN}4 mirroring")
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0

    before, _, after = screen.text().partition("\033[?1049l")
    assert "Traceback" not in before + after
    assert before.count("\033[?1049h") == 1
    assert f"{GREEN}4 mirroring" in after


def test_a_run_logs_lines_on_a_terminal_and_json_if_asked(
    site: Site, screen: PseudoTerminal
) -> None:
    """`--json` gives a terminal what a program gets."""
    site.produce(40)
    config = site.config()
    last = f"flows=({site.flow})"
    with on(screen, "run", config, "--once") as process:
        assert process.wait(60) == 0
        screen.wait_for(last)  # what a process wrote may be read later
    lines = [one.split() for one in CONTROLS.sub("", screen.so_far()).splitlines()]
    assert ["info", "ready"] in [one[1:3] for one in lines]
    assert ["info", "stopped", last] in [one[1:] for one in lines]
    begin = len(screen.so_far())

    with on(screen, "run", config, "--once", "--json") as process:
        assert process.wait(60) == 0

    events = [json.loads(one)["event"] for one in screen.text()[begin:].splitlines()]
    assert "ready" in events
