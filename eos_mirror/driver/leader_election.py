"""Runs of one file that take turns: one leads and mirrors, the others wait until it is gone."""

import threading
import time
from datetime import timedelta

from eos_mirror.kafka.leadership import Leadership
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings import clients
from eos_mirror.settings.model import FlowSettings

POLL = timedelta(seconds=0.1)
TOLD_AFTER_S = 6.0
"""A group without members takes three seconds to give its partition away."""


class LeaderElection:
    """
    Of one run. `wait` first, then `look` now and again; `end` when its tasks have ended.

    Two runs that both believe to lead, for a moment, are no danger: tasks fence each other.

    Attributes:
        is_over: It led, and another run does now.
    """

    def __init__(self, flow: FlowSettings, *, on_event: EventSink) -> None:
        """
        Args:
            flow: The one whose group decides for all flows of the run.
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
        Until this run leads, or `stop` is set.

        Returns:
            Whether it took long, so that others may have changed things meanwhile.

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
        """Whether this run still leads. It does not lead again: another election may."""
        with self._lock:
            if not self.is_over and not self._leadership.poll(timedelta(0)):
                self.is_over = True
                self._on_event("driver.superseded", {})

    def end(self) -> None:
        """Leave the group: the next run leads at once."""
        with self._lock:
            self._leadership.close()
