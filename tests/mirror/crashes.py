"""Tasks that stop themselves inside a transaction, and what a copy must be after a crash."""

import os
import signal
from datetime import timedelta

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.toolbox import STOPPED, FlowView, Mirror, state_of

RECORDS = 20_000
"""Records that a test produces before it harms a task."""

SHORTEST_SESSION_MS = 6_000
"""Brokers refuse shorter ones by default."""


def hold_a_writer(running: Mirror) -> int:
    """Wait until the task has stopped itself between flush and shadow offsets; return its pid."""
    pid = running.pid()
    wait_until(
        lambda: state_of(pid) == STOPPED,
        within=timedelta(seconds=30),
        what=f"process {pid} to stop itself: {running.events[-3:]} {running.errors}",
    )
    return pid


def wake(sleeper: int) -> None:
    """Let a stopped process continue, and wait until it has exited because it is too late."""
    os.kill(sleeper, signal.SIGCONT)
    wait_until(
        lambda: state_of(sleeper) in {None, "Z"},
        within=timedelta(seconds=30),
        what="the exit of the process that was woken",
    )


def undecided(site: Site, view: FlowView | None = None) -> int:
    """Count the records and markers on the target that no read_committed reader sees yet."""
    remotes = [TopicPartition(site.remote, p) for p in range(site.partitions)]
    target = (view or site.view).target
    return sum(target.high_watermarks(remotes).values()) - sum(target.ends(remotes).values())


def drain(site: Site, running: Mirror) -> None:
    """Wait until everything that is on the source has arrived, for a minute at most."""
    try:
        site.wait_caught_up()
    except TimeoutError as exc:
        positions = site.view.positions(site.remote, site.partitions)
        exc.add_note(f"{positions} {running.events[-20:]} {running.errors[-9:]}")
        raise


def assert_copied(site: Site, count: int) -> None:
    """Assert that the copy has every record once and in order, nothing else, nothing undecided."""
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == count, str(compared)
    assert undecided(site) == 0, f"{undecided(site)} records and markers are undecided"
