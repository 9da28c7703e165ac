"""Limits of copies: raised before topics are mirrored, or the topics are refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import cast

import pytest

from eos_mirror.core.copy_limits import ConfigSync
from eos_mirror.core.filters import TopicFilter
from eos_mirror.core.plan import FlowPlan
from eos_mirror.core.topic_configs import LIMIT, POLICY, Changes, ConfigFilter, Entry
from eos_mirror.driver import copy_limits
from eos_mirror.driver.copy_limits import raise_limits
from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.topics import Described, Topics
from tests.driver.fakes import FakeTopics, denied, entry, plan_of

PLAN = plan_of({"orders": 1}, {"A.orders": 1})


@dataclass(kw_only=True)
class SlowTopics(FakeTopics):
    """The first description after a change still shows the old configuration."""

    changed: dict[str, dict[str, Entry]] = field(default_factory=dict)

    def alter(self, wanted: Mapping[str, Changes]) -> dict[str, str]:
        """See `Topics`."""
        before = {name: dict(entries) for name, entries in self.entries.items()}
        refused = super().alter(wanted)
        self.changed, self.entries = self.entries, before
        return refused

    def describe(self, names: Sequence[str]) -> Described:
        """See `Topics`."""
        found = super().describe(names)
        if self.changed:
            self.changed, self.entries = {}, self.changed
        return found


@pytest.fixture
def source() -> FakeTopics:
    """A topic with large messages, and another entry that differs from its copy."""
    return FakeTopics(
        counts={"orders": 1}, entries={"orders": {LIMIT: entry(2000), "retention.ms": entry(7)}}
    )


@pytest.fixture
def target() -> SlowTopics:
    """A copy with a smaller limit."""
    return SlowTopics(counts={"A.orders": 1}, entries={"A.orders": {LIMIT: entry(1000)}})


class Reports:
    """What `raise_limits` reported."""

    def __init__(self) -> None:
        self.changes: dict[str, Mapping[str, str]] = {}
        self.denied: dict[str, str] = {}

    def __call__(self, wanted: Mapping[str, Changes], denied: Mapping[str, str]) -> None:
        """Keep a report."""
        self.changes = {name: changes.set for name, changes in wanted.items()}
        self.denied = dict(denied)


def raised(
    source: FakeTopics,
    target: FakeTopics,
    *,
    plan: FlowPlan = PLAN,
    is_on: bool = True,
    exclude: Sequence[str] = (),
) -> tuple[dict[str, str], Reports]:
    """Raise the limits; return why topics are refused, and what was reported."""
    reports = Reports()
    names = TopicFilter([".*"], exclude)
    sync = ConfigSync(
        rules=ConfigFilter(names=names, keeps_defaults=False), is_on=is_on, filter_key="key"
    )
    refused = raise_limits(
        plan,
        source=cast("Topics", source),
        target=cast("Topics", target),
        sync=sync,
        report=reports,
    )
    return refused, reports


def test_a_limit_is_raised_and_awaited_before_the_topic_is_mirrored(
    source: FakeTopics, target: SlowTopics
) -> None:
    """A broker with the old limit would refuse records; other entries wait for the usual sync."""
    refused, reports = raised(source, target)

    assert refused == {}
    assert reports.changes == {"A.orders": {LIMIT: "2000"}}
    assert [what for what, _ in target.requests] == ["describe", "alter", "describe", "describe"]
    assert target.entries["A.orders"] == {LIMIT: entry(2000)}


def test_a_change_that_takes_no_effect_in_time_delays_the_start_and_does_not_fail_it(
    source: FakeTopics, target: SlowTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that does not fit stops its partition later."""
    monkeypatch.setattr(copy_limits, "IN_EFFECT", timedelta(0))

    assert raised(source, target)[0] == {}
    assert [what for what, _ in target.requests] == ["describe", "alter", "describe"]


@pytest.mark.parametrize(
    ("is_on", "exclude"), [(False, ()), (True, (LIMIT,))], ids=["no sync", "excluded"]
)
def test_a_limit_that_may_not_be_raised_refuses_the_topic(
    source: FakeTopics, target: SlowTopics, is_on: bool, exclude: Sequence[str]
) -> None:
    """Nothing is written: the configuration says that the copy has its own limit."""
    refused, reports = raised(source, target, is_on=is_on, exclude=exclude)

    assert "A.orders accepts messages of 1000 bytes" in refused["orders"]
    assert not target.writes
    assert not reports.changes


def test_a_limit_that_the_target_does_not_raise_refuses_only_its_topic(
    source: FakeTopics, target: SlowTopics
) -> None:
    """Its reason quotes the target, so the change is not also reported as failed."""
    for name in ("users", "orders"):
        source.counts[name], source.entries[name] = 1, {LIMIT: entry(2000)}
        target.counts[f"A.{name}"], target.entries[f"A.{name}"] = 1, {LIMIT: entry(1000)}
    target.refused = {"A.orders": denied("alter A.orders")}

    refused, reports = raised(source, target, plan=plan_of(source.counts, target.counts))

    assert refused.keys() == {"orders"}
    assert "alter A.orders" in refused["orders"]
    assert reports.changes.keys() == {"A.users"}


def test_a_compaction_that_the_target_does_not_end_is_reported(
    source: FakeTopics, target: SlowTopics
) -> None:
    """The topic is mirrored anyway: its limit is large enough."""
    source.entries["orders"] = {LIMIT: entry(1000), POLICY: entry("delete")}
    target.entries["A.orders"][POLICY] = entry("compact")
    target.refused = {"A.orders": denied("alter A.orders")}

    refused, reports = raised(source, target)

    assert refused == {}
    assert reports.changes == {"A.orders": {POLICY: "delete"}}
    assert reports.denied.keys() == {"A.orders"}


def test_a_topic_that_a_cluster_does_not_describe_is_refused(
    source: FakeTopics, target: SlowTopics
) -> None:
    """Whichever cluster it is; a copy with enough room is not altered."""
    source.undescribed = {"orders": denied("describe orders")}
    assert "describe orders" in raised(source, target)[0]["orders"]

    source.undescribed, target.undescribed = {}, {"A.orders": denied("describe A.orders")}
    assert "describe A.orders" in raised(source, target)[0]["orders"]

    target.undescribed, target.entries["A.orders"] = {}, {LIMIT: entry(3000)}
    assert raised(source, target)[0] == {}
    assert not target.writes


def test_no_routes_need_no_request_and_no_answer_is_an_error(
    source: FakeTopics, target: SlowTopics
) -> None:
    """A cluster that is away does not hold up a plan without topics."""
    target.down = TargetUnavailable("no answer")

    assert raised(source, target, plan=plan_of({}))[0] == {}
    with pytest.raises(TargetUnavailable):
        raised(source, target)
