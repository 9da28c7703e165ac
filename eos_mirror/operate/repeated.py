"""Calls a function again and again in a child process, which is replaced if it hangs or dies."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Generic, NamedTuple, TypeVar

from eos_mirror.errors import ConfigError, MirrorError
from eos_mirror.runtime.lifeline import die_with_parent

T = TypeVar("T")

_SPAWN = multiprocessing.get_context("spawn")  # a client does not survive a fork


class _Failure(NamedTuple):
    """A MirrorError, as it crosses the pipe."""

    text: str
    exit_code: int


class Repeated(Generic[T]):
    """
    A function that uses clients of the library, to be called many times. Used by one thread.

    Such a client may crash its process when a coordinator moves (librdkafka issue 5040), and its
    destructor may block (4674). Neither may stop a program that runs until its user ends it.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        """
        Args:
            function: Picklable, and so is what it returns.
        """
        self._function = function
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def __call__(self, within: timedelta) -> T:
        """
        Call the function once.

        Args:
            within: Limit; afterwards the next call uses a new process.

        Raises:
            ConfigError: The function raised it.
            MirrorError: The function raised one, the time is over, or the process died.
        """
        pipe = self._pipe or self._start()
        try:
            pipe.send(None)
            if not pipe.poll(within.total_seconds()):
                self.close()
                raise MirrorError(f"no answer within {within.total_seconds():.0f} s")
            answer: T | _Failure = pipe.recv()
        except (EOFError, OSError) as exc:
            self.close()
            raise MirrorError("the process that asks the clusters died") from exc
        if isinstance(answer, _Failure):
            is_wrong = answer.exit_code == ConfigError.exit_code
            raise ConfigError(answer.text) if is_wrong else MirrorError(answer.text)
        return answer

    def _start(self) -> Connection:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(
            target=_serve, args=(self._function, theirs, os.getpid()), daemon=True
        )
        self._process.start()
        theirs.close()
        return self._pipe

    def close(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None


def _serve(function: Callable[[], T], pipe: Connection, parent_pid: int) -> None:
    """Answer each message with the result of a call."""
    die_with_parent(parent_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it here, too
    with suppress(EOFError):
        while True:
            pipe.recv()
            pipe.send(_called(function))
    os._exit(0)  # the destructor of a client may block


def _called(function: Callable[[], T]) -> T | _Failure:
    try:
        return function()
    except MirrorError as exc:
        return _Failure(str(exc), exc.exit_code)
