"""What operators want of a flow, as its run reads it; and the report that it was done."""

from collections.abc import Iterable
from typing import Any, Final

from eos_mirror.core.desired import (
    APPLIED_KEY,
    NOTHING_ORDERED,
    Applied,
    DesiredState,
    LimitOrder,
    Order,
    Request,
    Wanted,
    request_of,
)
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.errors import NotAuthorized, fields_of
from eos_mirror.kafka.desired_topic import DesiredTopic, write_desired
from eos_mirror.kafka.topics import TopicSpec
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings import clients
from eos_mirror.settings.model import FlowSettings

ORDERED: Final = {
    Wanted.PAUSED: "topics.paused",
    Wanted.STOPPED: "topics.stopped",
    Wanted.RUNNING: "topics.resumed",
}


class DesiredStateFollower:
    """
    Follows the desired-state topic of one flow. One thread at a time reads; any thread asks.

    A damaged record changes nothing, and is reported.
    """

    def __init__(
        self, settings: FlowSettings, clusters: FlowClusters, *, on_event: EventSink
    ) -> None:
        """
        Args:
            on_event: Receives log events.
        """
        self._settings = settings
        self._target = clusters.target_topics
        self._on_event = on_event
        self._topic = desired_topic(settings, clusters)
        self._state = NOTHING_ORDERED
        self._requests: list[Request] | None = None  # those from before the start do not count
        self._read_to = self._applied_to = 0

    def read(self) -> bool:
        """
        Read new orders and requests; return True if there are any.

        Raises:
            TargetUnavailable: The target did not answer in time.
            NotAuthorized: Read on the topic is missing.
        """
        before, updates = self._state, self._topic.updates()
        is_first = self._requests is None
        for key, value in updates:
            try:
                self._state = self._state.after(key, value)
                request = request_of(key)
            except ValueError as exc:
                self._on_event("order.unreadable", {"reason": str(exc)})
            else:
                if request is not None and value is not None and self._requests is not None:
                    self._requests.append(request)
        self._requests = self._requests or []
        if self._state is before and not self._requests:
            return False
        self._read_to = self._topic.end
        self._tell_changes(before, is_first=is_first)
        return True

    def _tell_changes(self, before: DesiredState, *, is_first: bool) -> None:
        """
        Log what was ordered, and what was taken back, since an earlier state.

        At the start of a run, orders that have no effect any more are not logged.
        """
        for order in self._state.orders.values():
            is_over = is_first and order.wanted is Wanted.RUNNING
            if before.orders.get(order.key) != order and not is_over:
                self._on_event(ORDERED[order.wanted], _described(order))
        for key, order in before.orders.items():
            if key not in self._state.orders and order.wanted is not Wanted.RUNNING:
                withdrawn = f"withdrawn: {order.reason}" if order.reason else "withdrawn"
                fields = {"topics": order.topics, "by": order.by, "reason": withdrawn}
                self._on_event(ORDERED[Wanted.RUNNING], fields)
        for limit in self._state.limits.values():
            is_over = is_first and not limit.limit
            if before.limits.get(limit.key) != limit and not is_over:
                self._on_event("topics.throttled", {**_described(limit), "limit": str(limit.limit)})

    def read_first(self) -> None:
        """
        Read the orders before the tasks start. Without the right to, the flow runs all the same.

        Raises:
            TargetUnavailable: The target did not answer in time.
        """
        try:
            self.read()
        except NotAuthorized as exc:
            self._on_event("orders.failed", fields_of(exc))

    def not_running(self, topics: Iterable[str]) -> dict[str, Order]:
        """Return the topics that are to be paused or stopped, sorted, with their orders."""
        return self._state.not_running(topics)

    def topics(self, wanted: Wanted, topics: Iterable[str]) -> tuple[str, ...]:
        """Return the topics that are to be in a state other than running, sorted."""
        orders = self._state.not_running(topics)
        return tuple(topic for topic, order in orders.items() if order.wanted is wanted)

    def limited(self, topics: Iterable[str]) -> dict[str | None, LimitOrder]:
        """Return the limits that count: None has the one that all topics share; then by topic."""
        return self._state.limited(topics)

    def taken_requests(self) -> list[Request]:
        """Return what operators asked for since the last call."""
        taken, self._requests = self._requests or [], []
        return taken

    @property
    def is_reported(self) -> bool:
        """True if the last orders were reported as done, or there were none."""
        return self._applied_to >= self._read_to

    def report_done(self, partitions: int) -> None:
        """
        Report that everything that was read is done.

        Args:
            partitions: How many partitions are paused or stopped.

        Raises:
            TargetUnavailable: The target did not acknowledge it.
            NotAuthorized: Write on the topic is missing.
        """
        done = Applied(through=self._read_to, partitions=partitions)
        write_desired(
            self._target,
            clients.claims_producer(self._settings),
            desired_spec(self._settings),
            [(APPLIED_KEY, done.encode())],
        )
        self._applied_to = self._read_to


def _described(order: Order | LimitOrder) -> dict[str, Any]:
    at = order.at.isoformat(timespec="seconds")
    return {"topics": order.topics, "by": order.by, "at": at, "reason": order.reason}


def desired_topic(settings: FlowSettings, clusters: FlowClusters) -> DesiredTopic:
    """Return a reader of the desired-state topic of a flow."""
    return DesiredTopic(
        settings.flow,
        clusters.target_topics,
        clusters.target,
        config=clients.target_admin(settings),
    )


def desired_spec(settings: FlowSettings) -> TopicSpec:
    """Return how the desired-state topic of a flow is created."""
    return TopicSpec(
        name=settings.flow.desired_topic,
        partitions=1,
        replication_factor=settings.internal_topic_replication_factor,
        config={
            "cleanup.policy": "compact",
            "unclean.leader.election.enable": "false",
            **settings.min_in_sync,
        },
    )
