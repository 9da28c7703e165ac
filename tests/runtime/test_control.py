"""The control server against peers that do not behave."""

import socket
from datetime import timedelta

import pytest

from eos_mirror.runtime.context import Outbox
from eos_mirror.runtime.link import Answer, Event, Link, RejectedError, Told
from eos_mirror.runtime.outcome import Ending, Outcome
from eos_mirror.runtime.spec import TaskSpec
from tests.runtime.toolbox import Stage


def beat(link: Link) -> Answer:
    """Send one heartbeat."""
    return link.heartbeat(Told(reports=[{"turns": 1}]), loop_age_s=0.0, events_dropped=0)


def spec_with(stage: Stage, *, key: str) -> TaskSpec:
    """Return a spec with this key."""
    return TaskSpec(
        slot=0,
        submission="0.0",
        control_host=stage.server.host,
        control_port=stage.server.port,
        key=key,
        entry="tests.runtime.entries:idle",
        config={},
    )


def test_a_peer_without_the_key_is_not_heard(stage: Stage) -> None:
    """A wrong signature closes the connection and gets no lease."""
    stage.leases.expect(0, "0.0")

    with pytest.raises(OSError, match="closed"):
        beat(Link(spec_with(stage, key="00" * 32)))

    view = stage.leases.view(0)
    assert view is not None
    assert view.holder is None


def test_a_connection_that_breaks_is_made_again(stage: Stage) -> None:
    """The same process keeps its lease over a reconnect, and gets the orders again."""
    stage.leases.expect(0, "0.0")
    stage.server.set_orders({"topics": ["orders"]})
    link = Link(stage.spec("idle"))
    first = beat(link)
    assert (first.ttl_s, first.orders) == (30.0, {"topics": ["orders"]})
    assert beat(link).orders is None, "orders are sent once per connection"

    link.close()

    assert beat(link) == first
    link.close()


def test_a_stale_process_is_rejected_when_it_comes_back(stage: Stage) -> None:
    """After its replacement was submitted, a reconnect is answered REJECT."""
    stage.leases.expect(0, "0.0")
    link = Link(stage.spec("idle"))
    beat(link)
    stage.leases.expect(0, "0.1")
    link.close()

    with pytest.raises(RejectedError, match="not the newest"):
        beat(link)


def test_a_bye_is_recorded(stage: Stage) -> None:
    """The end of a task, its last reports and its last events arrive together."""
    stage.leases.expect(0, "0.0")
    link = Link(stage.spec("idle"))
    beat(link)
    ending = Ending(Outcome.RESTART, "ProducerFenced: by a later claim")

    last = Told(reports=[{"turns": 2}], events=[("toy.e", {})])
    assert link.bye(ending, last, within=timedelta(seconds=2))

    view = stage.leases.view(0)
    assert view is not None
    assert view.ending == ending
    assert stage.reports == {"0.0": {"turns": 2}}
    assert stage.heard("toy.e") == [{"task": 0}]
    link.close()


def test_a_bye_without_a_driver_does_not_raise(stage: Stage) -> None:
    """A task can exit although no driver receives its BYE."""
    link = Link(stage.spec("idle"))
    stage.server.stop()

    assert not link.bye(Ending(Outcome.STOPPED), Told(), within=timedelta(seconds=2))


def test_a_peer_that_hangs_up_costs_nothing(stage: Stage) -> None:
    """A port scan leaves the server as it was."""
    socket.create_connection((stage.server.host, stage.server.port)).close()
    stage.leases.expect(0, "0.0")
    link = Link(stage.spec("idle"))

    assert beat(link).command == "RUN"
    link.close()


def test_a_full_outbox_drops_the_oldest_and_counts() -> None:
    """A confirmed event is removed once; an event that is dropped unsent is counted."""
    outbox: Outbox[Event] = Outbox(max_items=3)
    for name in "abc":
        outbox.put((name, {}))
    serial, batch = outbox.pending()
    assert [name for name, _ in batch] == ["a", "b", "c"]

    outbox.put(("d", {}))  # while the batch is in flight
    outbox.confirm(serial)

    assert outbox.pending()[1] == [("d", {})]
    assert outbox.dropped_count == 1
