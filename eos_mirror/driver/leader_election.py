"""Leader election among the runs of a flow: one mirrors, the others are on standby."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from eos_mirror.core.paths_report import PathsReport
from eos_mirror.core.run_identity import RunIdentity, decode_identity
from eos_mirror.driver.this_run import identity_of, is_gone, is_here
from eos_mirror.errors import TargetUnavailable, UnsafeError
from eos_mirror.kafka.groups import GroupMember
from eos_mirror.kafka.leadership import Leadership
from eos_mirror.kafka.topics import Topics
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings import clients
from eos_mirror.settings.model import FlowSettings

POLL: Final = timedelta(seconds=0.05)
LOOK_S: Final = 1.0
"""While another run mirrors, this one looks this often whether it is still there."""

SESSION_MARGIN: Final = timedelta(seconds=3)


class LeaderElection:
    """
    The election of a flow as one run sees it.

    Call `wait` first, then `look` periodically, and `end` after the tasks of the run have ended.
    Two runs may both believe for a moment that they lead. That is safe: tasks fence each other.

    Attributes:
        flow: What this run wants to mirror.
        is_over: True if this run led and another one leads now.
    """

    def __init__(
        self, flow: FlowSettings, target: Topics, *, may_wait: bool, on_event: EventSink
    ) -> None:
        """
        Args:
            target: Topics of the target: its client is asked who is in the group.
            may_wait: False to refuse the start if another run mirrors the flow.
        """
        self.flow = flow.flow
        self._target = target
        self._may_wait = may_wait
        self._gone_after = flow.session_timeout + SESSION_MARGIN
        self._on_event = on_event
        self._lock = threading.Lock()
        self._identity = identity_of(flow)
        self._leadership = Leadership(
            clients.driver_member(flow, self._identity),
            group=flow.flow.drivers_group,
            topic=flow.flow.claims_topic,
            session=flow.session_timeout,
        )
        self.is_over = False

    def wait(self, stop: threading.Event, *, on_standby: Callable[[], None]) -> bool:
        """
        Wait until this run leads or `stop` is set.

        Args:
            on_standby: Called once if another run leads.

        Returns:
            True if it stood by, so that the clusters may have changed meanwhile.

        Raises:
            NotAuthorized: A right on the group is missing.
            UnsafeError: Another run mirrors the flow, and this one may not wait for it.
        """
        began = look_at = time.monotonic()
        is_standing_by = False
        while not stop.is_set() and not self._leadership.poll(POLL):
            if time.monotonic() < look_at:
                continue
            others = self._others()
            if others is None:
                continue
            if not others:
                self._leadership.assume()
                break
            look_at = time.monotonic() + LOOK_S
            if not self._may_wait:
                self._refuse(others, waited=timedelta(seconds=time.monotonic() - began))
            elif not is_standing_by:
                is_standing_by = True
                self._on_event("driver.waiting", {"flow": str(self.flow), **_described(others)})
                on_standby()
        if is_standing_by and self._leadership.leads:
            after_s = round(time.monotonic() - began, 3)
            self._on_event("driver.leading", {"flow": str(self.flow), "after_s": after_s})
        return is_standing_by

    def _others(self) -> list[GroupMember] | None:
        """Return the members of other runs that may be alive; None if that is not known yet."""
        try:
            others = self._leadership.others(self._target.admin)
        except TargetUnavailable:
            return None
        if others is None:
            return None
        return living(others)

    def _refuse(self, others: Sequence[GroupMember], *, waited: timedelta) -> None:
        """Refuse the start, unless the others may be dead members whose session is not over."""
        run = leader_of(others)
        if waited < self._gone_after and (run is None or not is_here(run)):
            return
        where = f"{run} since {run.started_at:%Y-%m-%d %H:%M:%S} UTC" if run else others[0].host
        raise UnsafeError(
            f"{self.flow}: another run mirrors this flow ({where}). Stop it, or set "
            f"standby.enabled = true to wait for its end."
        )

    def look(self) -> None:
        """Check that this run still leads. If not, only a new election can make it lead again."""
        with self._lock:
            if not self.is_over and not self._leadership.poll(timedelta(0)):
                self.is_over = True
                self._on_event("driver.superseded", {"flow": str(self.flow)})

    def publish(self, passed: int, decoded: Mapping[str, int]) -> None:
        """Let `status` read by which paths this run has written records; see `PathsReport`."""
        report = PathsReport(run=self._identity.encode(), passed=passed, decoded=decoded)
        with self._lock:
            if not self.is_over:
                self._leadership.publish(report.encode())

    def end(self) -> None:
        """Leave the group, so that the next run leads immediately."""
        with self._lock:
            self._leadership.close()


def living(members: Sequence[GroupMember]) -> list[GroupMember]:
    """Return the members of runs that may be alive."""
    runs = [(member, decode_identity(member.client_id)) for member in members]
    return [member for member, run in runs if run is None or not is_gone(run)]


def leader_of(members: Sequence[GroupMember]) -> RunIdentity | None:
    """Return the run that leads: its member owns the partition, or it is the oldest one."""
    runs = [(not one.owns, run) for one in members if (run := decode_identity(one.client_id))]
    return min(runs, key=lambda one: (one[0], one[1].started_at))[1] if runs else None


def _described(members: Sequence[GroupMember]) -> dict[str, Any]:
    run = leader_of(members)
    if run is None:
        return {"host": members[0].host}
    return {"host": run.host, "pid": run.pid, "since": run.started_at.isoformat(timespec="seconds")}
