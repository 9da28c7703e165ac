"""Events of a cluster that stops answering, and answers again."""

from collections.abc import Callable
from functools import partial
from itertools import count

import pytest

from eos_mirror.driver import cluster_watch
from eos_mirror.driver.cluster_watch import ClusterWatch
from eos_mirror.driver.logins import RefusedLogins
from eos_mirror.kafka.cluster_probe import Refusal, Silence
from tests.driver.fake_probe import FakeProbe
from tests.driver.fakes import FLOW, Events

SERVERS = "a:9092,b:9092"
WHERE = {"cluster": "A", "servers": SERVERS}


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[str], Events]]:
    """
    Return a function that asks a cluster with these answers.

    It returns the reason that is known after each answer, and the events.
    """

    def ask(*answers: Silence | None) -> tuple[list[str], Events]:
        monkeypatch.setattr(FakeProbe, "answers", {SERVERS: list(answers)})
        monkeypatch.setattr(cluster_watch, "ClusterProbe", FakeProbe)
        events, outages = Events(), dict[str, str]()
        watch = ClusterWatch(
            "A",
            {"bootstrap.servers": SERVERS},
            outages=outages,
            on_event=events,
            logins=RefusedLogins(),
            now=partial(next, count(100.0, 10.0)),
        )
        seen = []
        for _ in answers:
            watch.look()
            seen.append(outages.get("A", ""))
        return seen, events

    return ask


def test_each_outage_is_one_event_and_its_end_another(
    answering: Callable[..., tuple[list[str], Events]],
) -> None:
    """However often it is asked; the first reason counts, and a silence may have none."""
    down, other, mute = Silence("Connection refused"), Silence("Disconnected"), Silence("")

    seen, events = answering(None, down, other, down, None, None, mute, None)

    refused = "Connection refused"
    assert seen == ["", refused, refused, refused, "", "", "no answer", ""]
    assert list(events) == [
        ("cluster.unreachable", {**WHERE, "reason": "Connection refused"}),
        ("cluster.recovered", {"cluster": "A", "after_s": 40}),
        ("cluster.unreachable", {**WHERE, "reason": "no answer"}),
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


def test_a_refusal_during_an_outage_is_its_new_reason(
    answering: Callable[..., tuple[list[str], Events]],
) -> None:
    """Each kind of refusal is one event of an outage; a later silence does not hide it."""
    down = Silence("Connection refused")
    sealed = Silence("verify failed", Refusal.CERTIFICATE)
    again = Silence("verify failed elsewhere", Refusal.CERTIFICATE)
    login = Silence("wrong password", Refusal.LOGIN)

    seen, events = answering(down, sealed, down, again, login, again, None, sealed, None)

    cert, password = "verify failed", "wrong password"
    assert seen == ["Connection refused", cert, cert, cert, password, password, "", cert, ""]
    assert [fields.get("reason", name) for name, fields in events] == [
        "Connection refused", cert, password, "cluster.recovered", cert, "cluster.recovered",
    ]  # fmt: skip
    assert dict(events)["cluster.recovered"]["after_s"] == 20
