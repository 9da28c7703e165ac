"""Handles signals on a thread."""

import os
import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue


def note_interrupts() -> Callable[[], None]:
    """
    Record each Ctrl-C before it raises KeyboardInterrupt. Call this in the main thread.

    Python drops an exception that is raised in a finalizer, and Spark's client has many.

    Returns:
        A function that raises KeyboardInterrupt again if there was a Ctrl-C.
    """
    noted: list[int] = []

    def note(number: int, _frame: object) -> None:
        noted.append(number)
        raise KeyboardInterrupt

    def look() -> None:
        if noted:
            raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else another handler is set
        signal.signal(signal.SIGINT, note)
    return look


def on_signals(
    act: Callable[[str], None], *numbers: signal.Signals, only_once: bool = False
) -> None:
    """
    Start a thread that acts on each signal from now on. Call this in the main thread.

    A handler runs between two steps of the main thread, which may hold a lock: of an event that it
    waits for, or of the log. Acquiring that lock again would block indefinitely. So the handler
    only puts the signal into a queue that is safe to use there.

    Args:
        act: Takes the name of the signal. If it raises, no later signal is handled.
        only_once: Every signal after the first one raises KeyboardInterrupt in the main thread.
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


def reload_signals() -> tuple[signal.Signals, ...]:
    """Return SIGHUP without a terminal: then it is sent on purpose, and means "reload"."""
    return () if has_terminal() else (signal.SIGHUP,)


def stop_signals() -> tuple[signal.Signals, ...]:
    """
    Return the signals that stop a program that runs until it is stopped.

    A terminal that is closed sends SIGHUP; with `nohup` it is ignored.
    """
    stopping = (signal.SIGTERM, signal.SIGINT)
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return stopping if is_ignored or not has_terminal() else (*stopping, signal.SIGHUP)


def has_terminal() -> bool:
    """Return whether this process has a controlling terminal."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
