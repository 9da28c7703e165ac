"""Leader election among runs of one configuration: one mirrors, the others are on standby."""

import threading
import time
from datetime import timedelta

from eos_mirror.kafka.leadership import Leadership
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings import clients
from eos_mirror.settings.model import FlowSettings

POLL = timedelta(seconds=0.1)
TOLD_AFTER_S = 6.0
"""A group without members takes three seconds to assign its partition."""


class LeaderElection:
    """
    The election as one run sees it.

    Call `wait` first, then `look` periodically, and `end` after the tasks of the run have ended.
    Two runs may both believe for a moment that they lead. That is safe: tasks fence each other.

    Attributes:
        is_over: True if this run led and another one leads now.
    """

    def __init__(self, flow: FlowSettings, *, on_event: EventSink) -> None:
        """
        Args:
            flow: The flow whose group decides for all flows of the run.
        """
        self._on_event = on_event
        self._lock = threading.Lock()
        self._leadership = Leadership(
            clients.target_admin(flow),
            group=flow.flow.drivers_group,
            topic=flow.flow.claims_topic,
            session=flow.session_timeout,
        )
        self.is_over = False

    def wait(self, stop: threading.Event) -> bool:
        """
        Wait until this run leads or `stop` is set.

        Returns:
            True if it took long, so that the clusters may have changed meanwhile.

        Raises:
            NotAuthorized: A right on the group is missing.
        """
        began = time.monotonic()
        told = False
        while not stop.is_set() and not self._leadership.poll(POLL):
            if not told and time.monotonic() - began > TOLD_AFTER_S:
                told = True
                self._on_event("driver.waiting", {})
        if self._leadership.leads:
            self._on_event("driver.leading", {"after_s": round(time.monotonic() - began, 3)})
        return told

    def look(self) -> None:
        """Check that this run still leads. If not, only a new election can make it lead again."""
        with self._lock:
            if not self.is_over and not self._leadership.poll(timedelta(0)):
                self.is_over = True
                self._on_event("driver.superseded", {})

    def end(self) -> None:
        """Leave the group, so that the next run leads immediately."""
        with self._lock:
            self._leadership.close()
