"""Events of a cluster that stops answering, and answers again."""

from itertools import count

import pytest

from eos_mirror.driver import cluster_watch
from eos_mirror.driver.cluster_watch import ClusterWatch
from eos_mirror.driver.logins import RefusedLogins
from eos_mirror.kafka.cluster_probe import Refusal, Silence
from tests.driver.fake_probe import FakeProbe
from tests.driver.fakes import FLOW, Events

SERVERS = "a:9092,b:9092"


def test_each_outage_is_one_event_and_its_end_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is asked; the first reason counts, and a silence may have none."""
    down, other, mute = Silence("Connection refused"), Silence("Disconnected"), Silence("")
    answers = {SERVERS: [None, down, other, down, None, None, mute, None]}
    monkeypatch.setattr(FakeProbe, "answers", answers)
    monkeypatch.setattr(cluster_watch, "ClusterProbe", FakeProbe)
    events = Events()
    clock = count(100.0, 10.0)
    outages: dict[str, str] = {}
    watch = ClusterWatch(
        "A",
        {"bootstrap.servers": SERVERS},
        outages=outages,
        on_event=events,
        logins=RefusedLogins(),
        now=lambda: next(clock),
    )
    seen = []

    for _ in range(8):
        watch.look()
        seen.append(outages.get("A", ""))

    refused = "Connection refused"
    assert seen == ["", refused, refused, refused, "", "", "no answer", ""]

    where = {"cluster": "A", "servers": SERVERS}
    assert list(events) == [
        ("cluster.unreachable", {**where, "reason": "Connection refused"}),
        ("cluster.recovered", {"cluster": "A", "after_s": 40}),
        ("cluster.unreachable", {**where, "reason": "no answer"}),
        ("cluster.recovered", {"cluster": "A", "after_s": 20}),
    ]


def test_a_refused_login_is_repeated_after_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory may lock the account. Tasks wait meanwhile."""
    refused = Silence("invalid credentials", Refusal.LOGIN)
    answers = [None, refused, refused, None]
    monkeypatch.setattr(FakeProbe, "answers", {SERVERS: answers})
    monkeypatch.setattr(cluster_watch, "ClusterProbe", FakeProbe)
    logins, waits = RefusedLogins(), []
    clock_s = 0.0
    watch = ClusterWatch(
        "A",
        {"bootstrap.servers": SERVERS},
        outages={},
        on_event=Events(),
        logins=logins,
        now=lambda: clock_s,
    )

    asked_at_s = []
    for clock_s in (100.0, 103.0, 106.0, 112.0, 113.0, 116.0, 122.0, 123.0):
        before = len(answers)
        watch.look()
        if len(answers) < before:
            asked_at_s.append(clock_s)
            waits.append(not logins.may_log_in(FLOW))

    assert asked_at_s == [100.0, 103.0, 113.0, 123.0]
    assert waits == [False, True, True, False]


def test_a_task_that_died_makes_the_watch_log_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers keep a connection open whose password was changed: its answers prove nothing."""
    monkeypatch.setattr(FakeProbe, "renewed", 0)
    monkeypatch.setattr(cluster_watch, "ClusterProbe", FakeProbe)
    logins = RefusedLogins()
    watch = ClusterWatch(
        "A", {"bootstrap.servers": SERVERS}, outages={}, on_event=Events(), logins=logins
    )

    watch.look()
    assert FakeProbe.renewed == 0
    assert logins.may_log_in(FLOW)
    watch.look()
    watch.look()

    assert FakeProbe.renewed == 1
