"""The election as one run sees it: it waits, leads, and ends when another run leads."""

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.driver import leader_election
from eos_mirror.driver.leader_election import LeaderElection
from eos_mirror.errors import NotAuthorized
from tests.driver.fakes import FLOW, Events, flow_of


class FakeLeadership:
    """
    `Leadership` with scripted answers.

    Attributes:
        answers: Whether this run leads, poll by poll; the last answer repeats.
        act: Called by each poll.
    """

    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.act: Callable[[], None] = lambda: None
        self.leads = self.is_closed = False
        self.polls = 0
        self.names: tuple[str, str] | None = None

    def poll(self, _wait: timedelta) -> bool:
        """See `Leadership`."""
        self.polls += 1
        self.act()
        self.leads = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return self.leads

    def close(self) -> None:
        """See `Leadership`."""
        self.is_closed = True


@pytest.fixture
def events() -> Events:
    """None yet."""
    return Events()


@pytest.fixture
def elect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: Events
) -> Callable[[FakeLeadership], LeaderElection]:
    """Makes the election of a run with this leadership."""

    def make(leadership: FakeLeadership) -> LeaderElection:
        def joined(_config: object, *, group: str, topic: str, session: timedelta) -> object:
            assert session > timedelta(0)
            leadership.names = group, topic
            return leadership

        monkeypatch.setattr(leader_election, "Leadership", joined)
        return LeaderElection(flow_of(tmp_path), on_event=events)

    return make


Elect = Callable[[FakeLeadership], LeaderElection]


def test_a_run_that_leads_soon_does_not_repeat_its_checks(elect: Elect, events: Events) -> None:
    """It joins the group of the drivers, whose only partition decides."""
    leadership = FakeLeadership(False, False, True)

    assert elect(leadership).wait(threading.Event()) is False

    assert leadership.names == (FLOW.drivers_group, FLOW.claims_topic)
    assert leadership.polls == 3
    assert events.names == ["driver.leading"]


def test_a_long_wait_is_reported_once_and_the_checks_are_repeated(
    elect: Elect, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clusters may have changed meanwhile."""
    monkeypatch.setattr(leader_election, "TOLD_AFTER_S", -1.0)

    assert elect(FakeLeadership(False, False, False, True)).wait(threading.Event()) is True

    assert events.names == ["driver.waiting", "driver.leading"]


def test_a_signal_ends_the_wait_without_a_leader(elect: Elect, events: Events) -> None:
    """A run on standby stops like any other."""
    stop, leadership = threading.Event(), FakeLeadership(False)
    leadership.act = lambda: stop.set() if leadership.polls == 2 else None

    elect(leadership).wait(stop)

    assert leadership.polls == 2
    assert events == []


def test_a_run_that_was_replaced_never_leads_again(elect: Elect, events: Events) -> None:
    """Only a new election can make it lead: its tasks have been fenced."""
    leadership = FakeLeadership(True, True, False, True)
    election = elect(leadership)
    election.wait(threading.Event())
    election.look()
    assert events.names == ["driver.leading"]

    for _ in range(3):
        election.look()

    assert election.is_over
    assert events.names == ["driver.leading", "driver.superseded"]
    assert leadership.polls == 3


def test_a_missing_right_on_the_group_ends_the_wait(elect: Elect) -> None:
    """A person has to grant it; the run would wait indefinitely."""

    def refuse() -> None:
        raise NotAuthorized("READ on the group")

    leadership = FakeLeadership(False)
    leadership.act = refuse

    with pytest.raises(NotAuthorized):
        elect(leadership).wait(threading.Event())


def test_the_end_leaves_the_group(elect: Elect) -> None:
    """The next run leads immediately, without waiting for the session to expire."""
    leadership = FakeLeadership(True)
    elect(leadership).end()

    assert leadership.is_closed
