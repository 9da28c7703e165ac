"""Waits for futures and calls a function meanwhile."""

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TypeVar

R = TypeVar("R")

LOOK_EVERY_S = 0.5


def completed(running: Collection["Future[R]"], look: Callable[[], None]) -> Iterator["Future[R]"]:
    """
    Yield futures as they complete.

    Args:
        look: Called repeatedly while none completes; may raise.
    """
    ended: SimpleQueue[Future[R]] = SimpleQueue()
    for one in running:
        one.add_done_callback(ended.put)
    for _ in running:
        yield _next(ended, look)


def _next(ended: "SimpleQueue[Future[R]]", look: Callable[[], None]) -> "Future[R]":
    while True:
        try:
            return ended.get(timeout=LOOK_EVERY_S)
        except Empty:
            look()
