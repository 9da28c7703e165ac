"""Signals that arrive while the main thread holds a lock that the action needs."""

import subprocess
import sys

WITHIN_S = 30

HELD = """
import signal, threading
from eos_mirror.cli.signals import on_signals

stop = threading.Event()
on_signals(lambda _: stop.set(), signal.SIGTERM)
with stop._cond:  # as for a moment in every stop.wait()
    signal.raise_signal(signal.SIGTERM)
assert stop.wait(10)
"""
TWICE = """
import signal
from eos_mirror.cli.signals import on_signals

heard = []
on_signals(heard.append, signal.SIGTERM, signal.SIGINT, only_once=True)
signal.raise_signal(signal.SIGTERM)
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    heard.append("again")
while len(heard) < 2:
    pass
assert sorted(heard) == ["SIGTERM", "again"], heard
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, because it may hang."""
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


def test_a_signal_is_acted_on_whatever_the_main_thread_holds() -> None:
    """A signal is acted on even if the main thread holds the lock of the event."""
    done = run(HELD)

    assert done.returncode == 0, done.stderr


def test_the_second_signal_may_end_it_at_once() -> None:
    """With `only_once`, the second signal raises immediately and is not acted on."""
    done = run(TWICE)

    assert done.returncode == 0, done.stderr


LOST = """
import signal
from eos_mirror.cli.signals import note_interrupts

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
look = note_interrupts()

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

look()
Finalized()
try:
    look()
except KeyboardInterrupt:
    raise SystemExit(7)
"""


def test_ctrl_c_inside_a_finalizer_is_noticed_at_the_next_look() -> None:
    """A Ctrl-C that Python ignores inside a finalizer is raised at the next check."""
    done = run(LOST)

    assert (done.returncode, "ignored" in done.stderr) == (7, True), done.stderr
