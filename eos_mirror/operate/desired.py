"""Writes what an operator wants of a flow, and waits until its run has done it."""

import getpass
import json
import re
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from eos_mirror.core.desired import (
    ALL,
    APPLIED_KEY,
    RELOAD_KEY,
    Applied,
    LimitOrder,
    Order,
    Wanted,
    decode_applied,
    retry_key,
)
from eos_mirror.core.throttles import Limit
from eos_mirror.driver.desired_state import desired_spec, desired_topic
from eos_mirror.driver.flow_clusters import FlowClusters, open_clusters
from eos_mirror.errors import ConfigError
from eos_mirror.kafka.desired_topic import write_desired
from eos_mirror.operate.flow_run import desired_state, is_run_now
from eos_mirror.settings import clients
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.plugins import policy_of

POLL_S: Final = 0.2
DONE_WITHIN: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What became of an order. It stays on the target in any case.

    Attributes:
        has_run: False if no run mirrors the flow: the next one does what was ordered.
        applied: What the run reported; None if it has not done it in time.
    """

    has_run: bool
    applied: Applied | None


def order(
    settings: FlowSettings, wanted: Wanted, *, topics: str = ALL, reason: str = ""
) -> Outcome:
    """
    Order what should become of topics, and wait for the effect.

    Args:
        topics: A regular expression that matches whole names of source topics.

    Raises:
        ConfigError: The expression is none.
        TargetUnavailable: The target did not answer, or not acknowledge the order.
        NotAuthorized: A right on the desired-state topic is missing.
    """
    one = Order(
        topics=checked_pattern(topics),
        wanted=wanted,
        at=datetime.now(UTC),
        by=_user(),
        reason=reason,
    )
    clusters = open_clusters(settings)
    records: list[tuple[str, str | None]] = [(one.key, one.encode())]
    if topics == ALL:  # nothing that was ordered before counts any more
        before = desired_state(settings, clusters)
        records = [(key, None) for key in before.orders if key != one.key] + records
    return _write_and_wait(settings, clusters, records)


def withdraw(settings: FlowSettings, *, topics: str) -> Outcome:
    """
    Take an order back, and wait for the effect: what was ordered before it counts again.

    Partitions that had failed are tried again now.

    Args:
        topics: The expression of the order.

    Errors: as `order`.
    """
    one = Order(topics=topics, wanted=Wanted.RUNNING, at=datetime.now(UTC), by=_user())
    records: list[tuple[str, str | None]] = [(one.key, None), (retry_key(topics), _asked_now())]
    return _write_and_wait(settings, open_clusters(settings), records)


def throttle(
    settings: FlowSettings, limit: Limit, *, topics: str = ALL, reason: str = ""
) -> Outcome:
    """
    Order how fast topics may be mirrored, and wait for the effect.

    Args:
        limit: Without a value, it lifts the limit of these topics; of all topics, every limit.
        topics: A regular expression that matches whole names of source topics. Each of them has
            the limit. All topics of the flow share one.

    Errors: as `order`.
    """
    one = LimitOrder(
        topics=checked_pattern(topics), limit=limit, at=datetime.now(UTC), by=_user(), reason=reason
    )
    clusters = open_clusters(settings)
    records: list[tuple[str, str | None]] = [(one.key, one.encode())]
    if topics == ALL and not limit:
        before = desired_state(settings, clusters)
        records = [(key, None) for key in before.limits if key != one.key] + records
    return _write_and_wait(settings, clusters, records)


def matches_a_copy(settings: FlowSettings, topics: str) -> bool:
    """
    Return False if a pattern matches the source topic of no remote topic on the target.

    True if the names of remote topics do not show their source topics.

    Raises:
        TargetUnavailable: The target did not answer.
    """
    if settings.renames or settings.transforms.routers:
        return True
    policy = policy_of(settings)
    names = open_clusters(settings).target_topics.list(within=settings.admin_timeout)
    return any(re.fullmatch(topics, policy.upstream_topic(one) or one) for one in names)


def retry(settings: FlowSettings, *, topics: str = ALL) -> Outcome:
    """
    Ask the run to try stopped partitions again now, and wait until it does.

    Args and errors: as `order`. Without a run there is nothing to try: the next one tries anyway.
    """
    return _request(settings, retry_key(checked_pattern(topics)))


def reload(settings: FlowSettings) -> Outcome:
    """
    Ask the run to read its configuration file now, and wait until it has applied the changes.

    Errors: as `order`. Without a run there is nothing to do: the next one reads the file.
    """
    return _request(settings, RELOAD_KEY)


def _request(settings: FlowSettings, key: str) -> Outcome:
    return _write_and_wait(settings, open_clusters(settings), [(key, _asked_now())])


def _asked_now() -> str:
    return json.dumps({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "by": _user()})


def _write_and_wait(
    settings: FlowSettings, clusters: FlowClusters, records: Sequence[tuple[str, str | None]]
) -> Outcome:
    through = write_desired(
        clusters.target_topics, clients.claims_producer(settings), desired_spec(settings), records
    )
    if not is_run_now(settings, clusters):
        return Outcome(has_run=False, applied=None)
    return Outcome(has_run=True, applied=_wait(settings, clusters, through))


def _user() -> str:
    return f"{getpass.getuser()}@{socket.gethostname()}"


def checked_pattern(topics: str) -> str:
    """
    Return a pattern of topics.

    Raises:
        ConfigError: It is no regular expression.
    """
    try:
        re.compile(topics)
    except re.error as exc:
        raise ConfigError(f"--topics {topics}: no regular expression: {exc}") from exc
    return topics


def _wait(settings: FlowSettings, clusters: FlowClusters, through: int) -> Applied | None:
    """Wait until a run reports that it has done what was ordered up to this offset."""
    topic = desired_topic(settings, clusters)
    deadline = time.monotonic() + DONE_WITHIN.total_seconds()
    while time.monotonic() < deadline:
        for key, value in topic.updates():
            applied = decode_applied(value) if key == APPLIED_KEY and value else None
            if applied is not None and applied.through > through:
                return applied
        time.sleep(POLL_S)
    return None
