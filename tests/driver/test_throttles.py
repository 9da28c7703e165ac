"""The driver divides limits among the tasks, by what they report."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from eos_mirror.core.desired import ALL, NOTHING_ORDERED, LimitOrder
from eos_mirror.core.messages import TaskReport, TaskThrottle
from eos_mirror.core.throttles import Limit
from eos_mirror.driver.throttles import Throttles

AT = datetime(2026, 3, 1, tzinfo=UTC)
TOPICS = ("audit", "orders")


class Division:
    """Limits of operators, a clock, and what tasks report."""

    def __init__(self, limits: Mapping[str, Limit]) -> None:
        self.now = 0.0
        state = NOTHING_ORDERED
        for topics, limit in limits.items():
            one = LimitOrder(topics=topics, limit=limit, at=AT, by="operator@host-7")
            state = state.after(one.key, one.encode().encode())
        desired = cast("Any", SimpleNamespace(limited=state.limited))
        self.throttles = Throttles(desired, now=lambda: self.now)

    def look(self, **of_slots: tuple[int, bool]) -> list[float | None]:
        """A second later, learn what each task did; return the shares of the whole flow."""
        self.now += 1
        reports = {
            int(slot.removeprefix("t")): report(records, waits=waits)
            for slot, (records, waits) in of_slots.items()
        }
        self.throttles.look(reports)
        return self.shares(len(of_slots))

    def shares(self, tasks: int) -> list[float | None]:
        """Return the shares of the flow's limit in records."""
        (flow,) = (one for one in self.throttles.divided(TOPICS, tasks=tasks) if one.topic is None)
        return [share.records_per_s for share in flow.shares]


def report(records: int, *, waits: bool = False, share: float = 0.0) -> TaskReport:
    """Return a report of a task under the flow's limit."""
    limit = Limit(records_per_s=share)
    one = TaskThrottle(topic=None, share=limit, records=records, bytes=0, waits=waits)
    return TaskReport(throttles=(one,))


def test_all_load_on_one_task_gives_it_nearly_everything() -> None:
    """It begins with its equal part, and has more a second later."""
    division = Division({ALL: Limit(records_per_s=1_000)})
    assert division.shares(2) == [500, 500]
    assert division.look(t0=(0, True), t1=(0, False)) == [500, 500]
    assert division.look(t0=(500, True), t1=(0, False)) == [990, 10]
    assert division.look(t0=(1_490, True), t1=(10, True)) == [500, 500]


def test_a_small_change_is_not_sent() -> None:
    """Orders go to every task, with the names of all topics."""
    division = Division({ALL: Limit(records_per_s=1_000)})
    division.look(t0=(0, True), t1=(0, False))
    assert division.look(t0=(500, True), t1=(200, False)) == [750, 250]
    assert division.look(t0=(1_250, True), t1=(410, False)) == [750, 250]
    assert division.look(t0=(2_000, True), t1=(660, False)) == [687.5, 312.5]


def test_a_new_process_of_a_task_counts_from_its_own_start() -> None:
    """Its counters begin again; what it used is not negative."""
    division = Division({ALL: Limit(records_per_s=1_000)})
    division.look(t0=(9_000, False), t1=(0, True))
    assert division.look(t0=(9_100, False), t1=(0, True)) == [125, 875]
    assert division.look(t0=(50, False), t1=(0, True)) == [10, 990]


def test_a_topic_has_its_newest_limit_beside_that_of_the_flow() -> None:
    """A limit without a value lifts an earlier one."""
    limits = {
        "orders|audit": Limit(bytes_per_s=10),
        ALL: Limit(records_per_s=1_000),
        "audit": Limit(),
    }
    found = Division(limits).throttles.limits(TOPICS)
    assert found == {None: Limit(records_per_s=1_000), "orders": Limit(bytes_per_s=10)}


def test_a_limit_is_applied_when_the_tasks_together_are_within_it() -> None:
    """A task that still has a larger share, or no limit yet, is waited for."""
    throttles = Division({ALL: Limit(records_per_s=1_000)}).throttles
    assert throttles.are_applied(TOPICS, [report(0, share=990), report(0, share=10)])
    assert not throttles.are_applied(TOPICS, [report(0, share=990), report(0, share=500)])
    assert not throttles.are_applied(TOPICS, [report(0, share=500), TaskReport()])
    assert not Division({}).throttles.are_applied(TOPICS, [report(0, share=500)])
    assert Division({}).throttles.are_applied(TOPICS, [TaskReport()])
