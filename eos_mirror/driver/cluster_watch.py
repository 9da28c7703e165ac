"""Reports when a cluster stops answering during a run, and when it answers again."""

import time
from collections.abc import Callable, Mapping, MutableMapping
from datetime import timedelta
from typing import Any, Final

from eos_mirror.kafka.cluster_probe import ClusterProbe
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.runtime.control import EventSink

EVERY: Final = timedelta(seconds=3)
ASKS_FOR: Final = timedelta(seconds=5)
"""With `EVERY`, an outage is reported within 10 s."""


class ClusterWatch:
    """
    Asks one cluster periodically, and logs one event when its state changes.

    The clients of the flows log nothing themselves: there are many of them, and each tries to
    connect several times a second during an outage.
    """

    def __init__(
        self,
        alias: str,
        config: Mapping[str, Any],
        *,
        outages: MutableMapping[str, str],
        on_event: EventSink,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            alias: Name of the cluster.
            config: Client settings for connection and security.
            outages: Gets the reason under the alias for as long as the cluster does not answer.
            on_event: Receives `cluster.unreachable` and `cluster.recovered`.
            now: A monotonic clock.
        """
        self.alias = alias
        self._servers = config["bootstrap.servers"]
        self._probe = ClusterProbe(config)
        self._outages = outages
        self._on_event = on_event
        self._now = now
        self._silent_since_s: float | None = None

    def look(self) -> None:
        """Ask once, for at most `ASKS_FOR`."""
        asked_s = self._now()
        silence = self._probe.ask(Deadline(ASKS_FOR))
        if silence and self._silent_since_s is None:
            self._silent_since_s = asked_s
            self._outages[self.alias] = reason = silence.cause or "no answer"
            where = {"cluster": self.alias, "servers": self._servers}
            self._on_event("cluster.unreachable", {**where, "reason": reason})
        elif silence is None and self._silent_since_s is not None:
            after_s, self._silent_since_s = self._now() - self._silent_since_s, None
            self._outages.pop(self.alias, None)
            self._on_event("cluster.recovered", {"cluster": self.alias, "after_s": round(after_s)})
