"""Toy task bodies for the tests; they are imported in the task's own process."""

import socket
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from eos_mirror.errors import NotAuthorized, TargetUnavailable
from eos_mirror.ports import TaskChannel

TURN_S = 0.02


def idle(_config: Mapping[str, Any], context: TaskChannel) -> None:
    """Loop until the stop is requested; report the orders seen."""
    turns = 0
    while not context.stop.wait(TURN_S):
        turns += 1
        context.report({"turns": turns, "orders": dict(context.orders())})
    context.event("toy.stopped", {"turns": turns})


def echo(config: Mapping[str, Any], context: TaskChannel) -> None:
    """Report the configuration and the modules that the process has loaded."""
    context.report(
        {"config": dict(config), "modules": sorted(sys.modules), "python": sys.executable}
    )
    context.event("toy.seen", {"slot": context.slot})
    context.stop.wait()


def finish(_config: Mapping[str, Any], _context: TaskChannel) -> None:
    """Return immediately, because there is nothing to do."""


def fail(_config: Mapping[str, Any], _context: TaskChannel) -> None:
    """Raise an error that a restart fixes."""
    raise TargetUnavailable("B did not answer\nwithin 5 s")


def fail_for_good(_config: Mapping[str, Any], _context: TaskChannel) -> None:
    """Raise an error that a restart does not fix."""
    raise NotAuthorized("Write on topic A.orders")


def block(_config: Mapping[str, Any], context: TaskChannel) -> None:
    """Hang in a C call that has released the GIL, as librdkafka does."""
    here, _there = socket.socketpair()
    with context.watch("commit", timedelta(milliseconds=200)):
        here.recv(1)


def stand_still(_config: Mapping[str, Any], context: TaskChannel) -> None:
    """Hang without a watch: heartbeats continue, the loop does not."""
    context.event("toy.standing", {})
    here, _there = socket.socketpair()
    here.recv(1)


def spin(_config: Mapping[str, Any], _context: TaskChannel) -> None:
    """Stay busy and react to nothing."""
    while True:
        pass
