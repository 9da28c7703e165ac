"""Signals, acted on by a thread."""

import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue


def note_interrupts() -> Callable[[], None]:
    """
    Have Ctrl-C noted before it is a KeyboardInterrupt; in the main thread.

    That is lost where it happens to be raised in a finalizer, of which Spark's client has many.

    Returns:
        Raises it again if there was one.
    """
    noted: list[int] = []

    def note(number: int, _frame: object) -> None:
        noted.append(number)
        raise KeyboardInterrupt

    def look() -> None:
        if noted:
            raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is somebody's
        signal.signal(signal.SIGINT, note)
    return look


def on_signals(
    act: Callable[[str], None], *numbers: signal.Signals, only_once: bool = False
) -> None:
    """
    Have a thread act on each signal from now on; in the main thread.

    A handler runs between two steps of the main thread, whatever locks that holds: of an event
    that it waits for, or of the log. Taking one of them again would wait for ever. So the handler
    only puts a note into a queue that may be interrupted.

    Args:
        act: Takes the name of the signal. What it raises ends it for good.
        only_once: Every signal after the first one is a KeyboardInterrupt in the main thread.
    """
    noted: SimpleQueue[int] = SimpleQueue()
    is_first = True

    def note(number: int, _frame: object) -> None:
        nonlocal is_first
        if only_once and not is_first:
            raise KeyboardInterrupt
        is_first = False
        noted.put(number)

    def attend() -> None:
        while True:
            act(signal.Signals(noted.get()).name)

    threading.Thread(target=attend, name="signals", daemon=True).start()
    for number in numbers:
        signal.signal(number, note)
