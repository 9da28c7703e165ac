"""Reports when a cluster stops answering during a run, and when it answers again."""

import time
from collections.abc import Callable, Mapping, MutableMapping
from datetime import timedelta
from typing import Any, Final

from eos_mirror.driver.logins import RefusedLogins
from eos_mirror.kafka.cluster_probe import ClusterProbe, Refusal, Silence
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.reconnecting import LOGIN_AGAIN_S, drop_refused_clients
from eos_mirror.runtime.control import EventSink

EVERY: Final = timedelta(seconds=3)
ASKS_FOR: Final = timedelta(seconds=5)
"""With `EVERY`, an outage is reported within 10 s."""


class ClusterWatch:
    """
    Asks one cluster periodically, and logs one event when its state changes.

    A refusal is one more event of the outage: a broker that starts with a wrong certificate does
    not listen at first, and only then refuses.

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
        logins: RefusedLogins,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            alias: Name of the cluster.
            config: Client settings for connection and security.
            outages: Gets the reason under the alias for as long as the cluster does not answer.
            on_event: Receives `cluster.unreachable` and `cluster.recovered`.
            logins: Learns from each answer if the cluster refuses the login.
            now: A monotonic clock.
        """
        self.alias = alias
        self._servers = config["bootstrap.servers"]
        self._probe = ClusterProbe(config)
        self._outages = outages
        self._on_event, self._logins = on_event, logins
        self._now = now
        self._asks_at_s = 0.0
        self._silent_since_s: float | None = None
        self._refusals: set[Refusal] = set()

    def look(self) -> None:
        """Ask once, for at most `ASKS_FOR`; not within 10 s of a refused login."""
        asked_s = self._now()
        if asked_s < self._asks_at_s:
            return
        if self._logins.take_doubt(self.alias):
            self._probe.renew()
        silence = self._probe.ask(Deadline(ASKS_FOR))
        self._note_login(asked_s, silence)
        if silence and self._is_new(silence):
            if self._silent_since_s is None:
                self._silent_since_s = asked_s
            self._outages[self.alias] = reason = silence.cause or "no answer"
            where = {"cluster": self.alias, "servers": self._servers}
            self._on_event("cluster.unreachable", {**where, "reason": reason})
        elif silence is None and self._silent_since_s is not None:
            after_s, self._silent_since_s = self._now() - self._silent_since_s, None
            self._refusals.clear()
            self._outages.pop(self.alias, None)
            self._on_event("cluster.recovered", {"cluster": self.alias, "after_s": round(after_s)})

    def _note_login(self, asked_s: float, silence: Silence | None) -> None:
        is_refused = silence is not None and silence.refusal is Refusal.LOGIN
        self._asks_at_s = asked_s + (LOGIN_AGAIN_S if is_refused else 0.0)
        self._logins.note(self.alias, is_refused=is_refused)
        if is_refused:
            drop_refused_clients()

    def _is_new(self, silence: Silence) -> bool:
        """Return whether the silence begins an outage, or is its first refusal of this kind."""
        is_refusal = silence.refusal is not None and silence.refusal not in self._refusals
        if silence.refusal is not None:
            self._refusals.add(silence.refusal)
        return is_refusal or self._silent_since_s is None
