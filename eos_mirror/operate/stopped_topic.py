"""Stops a topic of a flow for the length of a command that changes its positions."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from eos_mirror.core.desired import Wanted
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.errors import UnsafeError
from eos_mirror.operate.desired import order
from eos_mirror.operate.flow_run import desired_state
from eos_mirror.settings.model import FlowSettings


@contextmanager
def stopped_topic(
    settings: FlowSettings, clusters: FlowClusters, topic: str, command: str, reason: str
) -> Iterator[None]:
    """
    Stop a topic, and start it again after the block, whether or not a run mirrors the flow.

    A topic that an operator has stopped stays stopped. One that an interrupted run of the same
    command has stopped is started.

    Args:
        command: Of this program; the reason of the order begins with it.
        reason: In the words of the operator; may be empty.

    Raises:
        UnsafeError: The run has not reported in time that the topic is stopped; it stays ordered.
        TargetUnavailable: The target did not answer.
    """
    before = desired_state(settings, clusters).of(topic)
    was_stopped = before is not None and before.wanted is Wanted.STOPPED
    if before is None or not was_stopped:
        _order(settings, topic, Wanted.STOPPED, f"{command}: {reason}" if reason else command)
    try:
        yield
    finally:
        if before is None or not was_stopped or before.reason.startswith(command):
            _order(settings, topic, Wanted.RUNNING, f"{command} has ended")


def _order(settings: FlowSettings, topic: str, wanted: Wanted, reason: str) -> None:
    outcome = order(settings, wanted, topics=re.escape(topic), reason=reason)
    if outcome.has_run and outcome.applied is None:
        raise UnsafeError(
            f"{settings.flow} {topic}: the run has not reported in time that the topic is "
            f"{wanted.value}; it stays ordered. Repeat the command when `eos-mirror status` shows "
            f"it."
        )
