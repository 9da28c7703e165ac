"""Remembers which clusters refuse the login, so that tasks of their flows wait."""

import threading

from eos_mirror.core.flow import Flow


class RefusedLogins:
    """
    The clusters that refused the login when they were asked last.

    A task that dies meanwhile is not started again: each of its clients would repeat the login
    several times a second, and a directory may lock the account. Any thread may call every method.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refusing: set[str] = set()
        self._doubted: set[str] = set()

    def note(self, alias: str, *, is_refused: bool) -> None:
        """Note the last answer of a cluster."""
        with self._lock:
            if is_refused:
                self._refusing.add(alias)
            else:
                self._refusing.discard(alias)

    def may_log_in(self, flow: Flow) -> bool:
        """
        Return True if neither cluster of the flow refuses the login. Call it when a task died.

        The clusters are then asked with a new login: brokers do not close a connection when its
        password is changed, so the answer to an old connection proves nothing.
        """
        with self._lock:
            self._doubted |= {flow.source, flow.target}
            return self._refusing.isdisjoint((flow.source, flow.target))

    def take_doubt(self, alias: str) -> bool:
        """Return True if the cluster has to be asked with a new login; only once."""
        with self._lock:
            is_doubted = alias in self._doubted
            self._doubted.discard(alias)
            return is_doubted
