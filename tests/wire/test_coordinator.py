"""A coordinator that moves: it is found again before anything is sent to it."""

import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from eos_mirror.wire.cluster import Cluster, Coordinator, Kind
from eos_mirror.wire.errors import Unreachable
from eos_mirror.wire.messages import FIND_COORDINATOR
from eos_mirror.wire.security import PLAINTEXT
from tests.wire.scripted_broker import Asked, Peer, ScriptedBroker

SOON_S = 10.0
GONE = 9
"""The node of a broker that is dead."""


def dead_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Moving:
    """Answers first that a dead broker is the coordinator, and later that this one is."""

    def __init__(self, *, dead_answers: int) -> None:
        self._ports = deque([dead_port()] * dead_answers)
        self.broker = ScriptedBroker(self._serve, scripted={FIND_COORDINATOR.key})

    def _serve(self, peer: Peer, asked: Asked) -> None:
        answer: dict[str, Any] = self.broker.coordinators(asked)
        if self._ports:
            answer["coordinators"][0] |= {"node_id": GONE, "port": self._ports.popleft()}
        peer.answer(asked, answer)


@contextmanager
def coordinator_of(broker: ScriptedBroker) -> Iterator[Coordinator]:
    """Yield the coordinator of a group, which is not found yet."""
    cluster = Cluster(broker.bootstrap, PLAINTEXT, client_id="test")
    try:
        yield Coordinator(cluster, Kind.GROUP, "shadow")
    finally:
        cluster.close()


def test_a_dead_coordinator_is_replaced_before_anything_is_sent() -> None:
    """After the election, the same call connects to the new one."""
    moving = Moving(dead_answers=3)
    with moving.broker as broker, coordinator_of(broker) as coordinator:
        found = coordinator.connected(time.monotonic() + SOON_S)
        assert found.address == broker.bootstrap
        assert len(broker.requests(FIND_COORDINATOR)) == 4


def test_a_coordinator_that_stays_dead_is_unreachable() -> None:
    """The deadline ends the attempts; the caller knows that nothing was sent."""
    moving = Moving(dead_answers=10_000)
    with (
        moving.broker as broker,
        coordinator_of(broker) as coordinator,
        pytest.raises(Unreachable),
    ):
        coordinator.connected(time.monotonic() + 0.2)
