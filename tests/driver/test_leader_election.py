"""The election as one run sees it: it waits, leads, and ends when another run leads."""

import os
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from eos_mirror.core.run_identity import RunIdentity, decode_identity
from eos_mirror.driver import leader_election, this_run
from eos_mirror.driver.leader_election import LeaderElection
from eos_mirror.errors import NotAuthorized, UnsafeError
from eos_mirror.kafka.groups import GroupMember
from eos_mirror.kafka.topics import Topics
from tests.driver.fake_leadership import FakeLeadership
from tests.driver.fakes import FLOW, ORDERS, Events, flow_of

ELSEWHERE = RunIdentity(
    started_at=datetime(2026, 11, 27, 9, tzinfo=UTC),
    host="elsewhere",
    pid=7,
    version="1.2.3",
    fingerprint="0a1b2c3d",
)
HERE = replace(ELSEWHERE, host=socket.gethostname(), pid=os.getppid())


def member(run: RunIdentity, *, leads: bool = False) -> GroupMember:
    """Return the member of a run."""
    name = f"{FLOW.name}|{run.encode()}"
    return GroupMember(client_id=name, host="/10.0.0.1", owns=(ORDERS,) if leads else ())


@pytest.fixture
def events() -> Events:
    """None yet."""
    return Events()


@pytest.fixture
def elect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: Events
) -> Callable[..., LeaderElection]:
    """Makes the election of a run with this leadership."""
    monkeypatch.setattr(leader_election, "LOOK_S", 0.0)

    def make(leadership: FakeLeadership, *, may_wait: bool = True) -> LeaderElection:
        def joined(config: dict[str, str], *, group: str, topic: str, session: timedelta) -> object:
            run = decode_identity(config["client.id"])
            assert run is not None
            assert run.pid == os.getpid()
            assert session > timedelta(0)
            leadership.names = group, topic
            return leadership

        monkeypatch.setattr(leader_election, "Leadership", joined)
        target = cast("Topics", SimpleNamespace(admin=None))
        return LeaderElection(flow_of(tmp_path), target, may_wait=may_wait, on_event=events)

    return make


Elect = Callable[..., LeaderElection]


def wait(election: LeaderElection, stop: threading.Event | None = None) -> tuple[bool, int]:
    """Return whether the run stood by, and how often it checked."""
    checks: list[int] = []
    stood_by = election.wait(stop or threading.Event(), on_standby=lambda: checks.append(1))
    return stood_by, len(checks)


def test_a_run_leads_as_soon_as_it_is_the_only_member(elect: Elect, events: Events) -> None:
    """It does not wait for the assignment, which takes a new group three seconds."""
    leadership = FakeLeadership(False, members=[None, None, []])

    assert wait(elect(leadership)) == (False, 0)

    assert leadership.names == (FLOW.drivers_group, FLOW.claims_topic)
    assert leadership.leads
    assert leadership.polls == 3
    assert events == []


def test_a_run_stands_by_while_another_one_mirrors(elect: Elect, events: Events) -> None:
    """It says once whom it waits for, and checks once; then the group makes it the leader."""
    leadership = FakeLeadership(False, False, False, True, members=[[member(ELSEWHERE)]])

    assert wait(elect(leadership)) == (True, 1)

    assert events.names == ["driver.waiting", "driver.leading"]
    since = "2026-11-27T09:00:00+00:00"
    waiting = {"flow": "A->B", "host": "elsewhere", "pid": 7, "since": since}
    assert events.of("driver.waiting") == [waiting]


@pytest.mark.parametrize(
    "dead",
    [replace(HERE, pid=2**22 - 1), replace(HERE, pid=os.getpid())],
    ids=["no such process", "this process"],
)
def test_a_dead_run_of_this_host_is_not_waited_for(
    elect: Elect, events: Events, dead: RunIdentity
) -> None:
    """Its member stays in the group until its session is over."""
    assert wait(elect(FakeLeadership(False, members=[[member(dead)]]))) == (False, 0)
    assert events == []


def test_a_living_run_of_this_host_is_waited_for(elect: Elect, events: Events) -> None:
    """Of several members, the one that leads is named."""
    younger = replace(ELSEWHERE, host="third")
    others = [member(younger), member(HERE, leads=True)]

    wait(elect(FakeLeadership(False, True, members=[others])))

    assert events.of("driver.waiting")[0]["pid"] == os.getppid()


def test_a_member_of_another_release_is_waited_for(elect: Elect, events: Events) -> None:
    """Its client id says nothing but that it is there."""
    stranger = GroupMember(client_id="another-client", host="/10.0.0.9")

    assert wait(elect(FakeLeadership(False, True, members=[[stranger]]))) == (True, 1)

    assert events.of("driver.waiting") == [{"flow": "A->B", "host": "/10.0.0.9"}]


def test_a_run_that_may_not_wait_is_refused_with_the_place_of_the_other(elect: Elect) -> None:
    """A living process of this host is known to be one."""
    election = elect(FakeLeadership(False, members=[[member(HERE)]]), may_wait=False)
    where = rf"{HERE.host}, process {HERE.pid} since 2026-11-27 09:00:00 UTC"

    with pytest.raises(UnsafeError, match=f"A->B: another run mirrors this flow .{where}"):
        wait(election)


def test_a_run_that_may_not_wait_gives_a_dead_member_time_to_leave(
    elect: Elect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of another host that was killed is a member for a session."""
    others: list[list[GroupMember] | None] = [[member(ELSEWHERE)], [member(ELSEWHERE)], []]

    assert wait(elect(FakeLeadership(False, members=others), may_wait=False)) == (False, 0)

    monkeypatch.setattr(leader_election, "SESSION_MARGIN", timedelta(days=-1))
    election = elect(FakeLeadership(False, members=[[member(ELSEWHERE)]]), may_wait=False)
    with pytest.raises(UnsafeError, match="elsewhere, process 7"):
        wait(election)


def test_a_signal_ends_the_wait_without_a_leader(elect: Elect, events: Events) -> None:
    """A run on standby stops like any other."""
    stop, leadership = threading.Event(), FakeLeadership(False)
    leadership.act = lambda: stop.set() if leadership.polls == 2 else None

    wait(elect(leadership), stop)

    assert leadership.polls == 2
    assert events == []


def test_a_run_that_was_replaced_never_leads_again(elect: Elect, events: Events) -> None:
    """Only a new election can make it lead: its tasks have been fenced."""
    leadership = FakeLeadership(True, True, False, True)
    election = elect(leadership)
    wait(election)
    election.look()
    assert events == []

    for _ in range(3):
        election.look()

    assert election.is_over
    assert events == [("driver.superseded", {"flow": "A->B"})]
    assert leadership.polls == 3


def test_a_missing_right_on_the_group_ends_the_wait(elect: Elect) -> None:
    """The driver runs alone then, with a warning."""

    def refuse() -> None:
        raise NotAuthorized("READ on the group")

    leadership = FakeLeadership(False)
    leadership.act = refuse

    with pytest.raises(NotAuthorized):
        wait(elect(leadership))


def test_the_end_leaves_the_group(elect: Elect) -> None:
    """The next run leads immediately, without waiting for the session to expire."""
    leadership = FakeLeadership(True)
    elect(leadership).end()

    assert leadership.is_closed


def test_a_run_of_another_host_is_neither_here_nor_gone() -> None:
    """Nothing is known about a process of another host."""
    assert (this_run.is_here(ELSEWHERE), this_run.is_gone(ELSEWHERE)) == (False, False)
    assert (this_run.is_here(HERE), this_run.is_gone(HERE)) == (True, False)


@pytest.mark.parametrize(("later_s", "gone"), [(-1, True), (1, False)])
def test_a_container_that_starts_again_is_not_the_run_before_it(later_s: int, gone: bool) -> None:
    """Both have the same host name and process id; a run of this process began after it."""
    own = replace(HERE, pid=os.getpid(), started_at=this_run.BEGAN + timedelta(seconds=later_s))
    assert this_run.is_gone(own) is gone
