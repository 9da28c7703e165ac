"""Stops a topic of a flow for the length of a command that changes its positions."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from eos_mirror.core.desired import Wanted
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.errors import UnsafeError
from eos_mirror.operate.desired import Outcome, order, withdraw
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
    is_ours = before is None or before.wanted is not Wanted.STOPPED
    pattern = re.escape(topic)
    if is_ours:
        why = f"{command}: {reason}" if reason else command
        _check(settings, topic, order(settings, Wanted.STOPPED, topics=pattern, reason=why))
    elif before is not None:
        is_ours = before.topics == pattern and before.reason.startswith(command)
    try:
        yield
    finally:
        if is_ours:
            _check(settings, topic, withdraw(settings, topics=pattern))


def is_left_stopped(
    settings: FlowSettings, clusters: FlowClusters, topic: str, command: str
) -> bool:
    """
    Return whether an interrupted run of this command has left a topic stopped.

    Raises:
        TargetUnavailable: The target did not answer.
    """
    before, pattern = desired_state(settings, clusters).of(topic), re.escape(topic)
    if before is None or before.wanted is not Wanted.STOPPED or before.topics != pattern:
        return False
    return before.reason.startswith(command)


def start_left_stopped(
    settings: FlowSettings, clusters: FlowClusters, topic: str, command: str
) -> bool:
    """
    Start a topic that an interrupted run of this command has left stopped; return whether it has.

    Raises:
        UnsafeError: The run has not reported in time that the topic is started.
        TargetUnavailable: The target did not answer.
    """
    if not is_left_stopped(settings, clusters, topic, command):
        return False
    _check(settings, topic, withdraw(settings, topics=re.escape(topic)))
    return True


def _check(settings: FlowSettings, topic: str, outcome: Outcome) -> None:
    if outcome.has_run and outcome.applied is None:
        raise UnsafeError(
            f"{settings.flow} {topic}: the run has not reported in time that it follows the order; "
            f"the order stays. Repeat the command when `eos-mirror status` shows it."
        )
