"""What a run does when operators change what they want of topics."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast

import pytest

from eos_mirror.core.messages import Orders
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.driver.follow_desired import FollowDesired, Reloading
from tests.driver.fakes import FLOW, Events


@dataclass
class FakeRunner:
    """What `FollowDesired` uses of a `FlowRunner` whose operators want `wanted`."""

    orders: Orders
    wanted: Orders
    flow: str = str(FLOW)
    stopped: dict[object, str] = field(default_factory=dict)

    @property
    def desired(self) -> SimpleNamespace:
        """See `FlowRunner`: there is always something new, and nothing to report."""
        return SimpleNamespace(read=lambda: True, taken_requests=list, is_reported=True)

    def give_orders(self, change: Callable[[Orders], Orders] = lambda orders: orders) -> None:
        """See `FlowRunner`."""
        paused, stopped = self.wanted.paused, self.wanted.stopped_topics
        self.orders = replace(change(self.orders), paused=paused, stopped_topics=stopped)


@pytest.mark.parametrize(
    ("before", "after", "tried"),
    [
        (Orders(stopped_topics=("audit", "orders")), Orders(stopped_topics=("audit",)), "orders"),
        (Orders(paused=("orders",)), Orders(), "orders"),
        (Orders(paused=("orders",)), Orders(stopped_topics=("orders",)), ""),
        (Orders(), Orders(paused=("orders",)), ""),
    ],
    ids=["started", "resumed", "stopped while paused", "paused"],
)
def test_failed_partitions_of_topics_that_continue_are_tried_at_once(
    before: Orders, after: Orders, tried: str
) -> None:
    """Their causes may be repaired: the operator would wait up to five minutes otherwise."""
    failed = {TopicPartition("orders", 0): "too large", TopicPartition("audit", 0): "too large"}
    runner = FakeRunner(orders=replace(before, stopped=failed), wanted=after)
    reloading = cast("Reloading", SimpleNamespace(is_reloading=False))
    follower = FollowDesired(cast("FlowRunner", runner), reloading=reloading, on_event=Events())

    follower.look()
    follower.look()

    assert runner.orders.retries == ({tried: 1} if tried else {})
    still = {partition.topic for partition in runner.orders.stopped}
    assert still == {"audit", "orders"} - {tried}, "it is starting, until its task has tried"
