"""One connection, and a broker or a network that does what it wants with the answers."""

import random
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from eos_mirror.testing.waiting import wait_until
from eos_mirror.wire import connection as module
from eos_mirror.wire.connection import LONGEST_MUTE_S, Connection, wait_for
from eos_mirror.wire.errors import Malformed, Unanswered, Unreachable, WireError
from eos_mirror.wire.messages import API_VERSIONS, INIT_PRODUCER_ID, SASL_AUTHENTICATE
from eos_mirror.wire.security import PLAINTEXT
from tests.wire.hostile import mutated
from tests.wire.scripted_broker import Asked, Peer, Script, ScriptedBroker, framed, nothing

WITHIN = timedelta(seconds=10)
SHORT_S = 0.05
FIELDS = {
    "transactional_id": "id",
    "transaction_timeout_ms": 1,
    "producer_id": -1,
    "producer_epoch": -1,
}
BIG = 32 << 20
"""More than two sockets hold."""


def an_answer(producer_id: int = 7, throttle_ms: int = 0) -> dict[str, Any]:
    """Return an answer to InitProducerId."""
    return {
        "throttle_time_ms": throttle_ms,
        "error_code": 0,
        "producer_id": producer_id,
        "producer_epoch": 0,
    }


def soon(seconds: float = WITHIN.total_seconds()) -> float:
    """Return a deadline."""
    return time.monotonic() + seconds


@contextmanager
def connected(script: Script, **more: Any) -> Iterator[tuple[Connection, ScriptedBroker]]:
    """Yield a connection to a broker with a script."""
    with ScriptedBroker(script, **more) as broker:
        made = Connection("127.0.0.1", broker.port, PLAINTEXT, client_id="test", until=soon())
        try:
            yield made, broker
        finally:
            made.close()


def send(connection: Connection, *, until: float | None = None, tag: object = None) -> None:
    """Send a request."""
    body = [INIT_PRODUCER_ID.request.encode(FIELDS)]
    connection.send(INIT_PRODUCER_ID, body, until=until or soon(), tag=tag)


def assert_useless(connection: Connection) -> None:
    """Assert that a connection is never used again."""
    assert connection.is_closed
    assert connection.is_stale
    with pytest.raises(Unanswered):
        send(connection)
    with pytest.raises(Unanswered):
        connection.advance()
    assert wait_for([connection], until=soon()), "a loop would wait for a closed connection"


@pytest.mark.parametrize("end", ["close", "reset", "finish"])
def test_an_answer_cut_at_any_byte_is_no_answer(end: str) -> None:
    """However much of an answer arrived, a connection that ends then leaves the outcome unknown."""
    whole = framed(2, INIT_PRODUCER_ID.answer.encode(an_answer()), api=INIT_PRODUCER_ID)
    for cut in range(len(whole)):

        def script(peer: Peer, _: Asked, cut: int = cut) -> None:
            peer.send(whole[:cut])
            getattr(peer, end)()

        with connected(script) as (connection, _):
            send(connection)
            with pytest.raises(Unanswered):
                connection.receive()
            assert_useless(connection)


def test_an_answer_in_single_bytes_is_read() -> None:
    """An answer is complete when its last byte is there, however it was divided."""

    def script(peer: Peer, asked: Asked) -> None:
        whole = framed(asked.number, asked.api.answer.encode(an_answer()), api=asked.api)
        for at in range(len(whole)):
            peer.send(whole[at : at + 1])

    with connected(script) as (connection, _):
        for _ in range(3):
            assert connection.call(INIT_PRODUCER_ID, FIELDS, until=soon()) == an_answer()


def test_no_answer_in_time_closes_the_connection() -> None:
    """After the deadline the outcome is unknown, and a late answer is dropped."""
    with connected(nothing) as (connection, broker):
        with pytest.raises(Unanswered, match="InitProducerId"):
            connection.call(INIT_PRODUCER_ID, FIELDS, until=soon(SHORT_S))
        assert_useless(connection)
        broker.peers[0].answer(broker.seen[-1], an_answer())
        assert_useless(connection)


def out_of_order(peer: Peer, first: Asked, second: Asked) -> None:
    """Answer the second request first."""
    peer.answer(second, an_answer(2))
    peer.answer(first, an_answer(1))


def doubled(peer: Peer, first: Asked, _: Asked) -> None:
    """Answer the first request twice."""
    peer.answer(first, an_answer(1))
    peer.answer(first, an_answer(1))


def foreign(peer: Peer, first: Asked, second: Asked) -> None:
    """Answer requests that were never sent."""
    peer.answer(first, an_answer(1))
    peer.answer(Asked(second.api, second.number + 1, {}), an_answer(2))


@pytest.mark.parametrize("how", [out_of_order, doubled, foreign])
def test_an_answer_to_another_request_is_malformed(
    how: Callable[[Peer, Asked, Asked], None],
) -> None:
    """No answer is taken for that of another request."""
    asked: list[Asked] = []

    def script(peer: Peer, one: Asked) -> None:
        asked.append(one)
        if len(asked) == 2:
            how(peer, *asked)

    with connected(script) as (connection, _):
        send(connection, tag="first")
        send(connection, tag="second")
        if how is not out_of_order:
            assert connection.receive() == ("first", an_answer(1))
        with pytest.raises(Malformed):
            connection.receive()
        assert connection.is_stale


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 3, 2**31 - 1])
def test_an_impossible_size_is_malformed(size: int) -> None:
    """A frame of an impossible size is refused before anything is allocated or awaited."""

    def script(peer: Peer, _: Asked) -> None:
        peer.send(struct.pack(">i", size))

    with connected(script) as (connection, _):
        send(connection)
        with pytest.raises(Malformed):
            connection.receive()
        assert connection.is_stale


def test_changed_answers_never_do_anything_else() -> None:
    """A changed frame is an answer, malformed, or no answer: nothing else leaves a connection."""
    chosen = random.Random(11)

    def script(peer: Peer, asked: Asked) -> None:
        whole = framed(asked.number, asked.api.answer.encode(an_answer()), api=asked.api)
        peer.send(mutated(whole, chosen))
        peer.finish()

    outcomes = set()
    for _ in range(300):
        with connected(script) as (connection, _):
            try:
                connection.call(INIT_PRODUCER_ID, FIELDS, until=soon())
            except WireError as exc:
                outcomes.add(type(exc))
                assert connection.is_stale
    assert outcomes == {Malformed, Unanswered}


def test_a_hostile_greeting_never_does_anything_else() -> None:
    """Whatever answers the first request, opening a connection fails with an error of ours."""
    chosen = random.Random(12)
    outcomes = set()
    with ScriptedBroker(nothing, scripted={API_VERSIONS.key}) as broker:

        def script(peer: Peer, asked: Asked) -> None:
            body = asked.api.answer.encode(broker.api_versions(asked))
            peer.send(mutated(framed(asked.number, body, api=asked.api), chosen))
            peer.finish()

        broker.script = script
        for _ in range(300):
            try:
                Connection("127.0.0.1", broker.port, PLAINTEXT, client_id="", until=soon()).close()
            except WireError as exc:
                outcomes.add(type(exc))
    assert outcomes >= {Malformed, Unreachable}


# ---------------------------------------------------------------------- requests


def test_a_broker_that_does_not_read_does_not_hold_us_up() -> None:
    """A request that cannot be sent by its deadline is Unanswered: a part may have arrived."""
    with connected(nothing, receive_bytes=1 << 12) as (connection, broker):
        broker.reads.clear()
        send(connection)  # the broker reads one more
        with pytest.raises(Unanswered, match="does not read"):
            connection.send(
                SASL_AUTHENTICATE,
                [SASL_AUTHENTICATE.request.encode({"auth_bytes": bytes(BIG)})],
                until=soon(SHORT_S),
            )
        assert_useless(connection)


def test_a_broker_that_reads_slowly_gets_all_of_a_request() -> None:
    """A request of many parts arrives whole, whatever the sockets hold."""
    seen: list[bytes] = []

    def script(peer: Peer, asked: Asked) -> None:
        seen.append(asked.fields["auth_bytes"])
        fields = {
            "error_code": 0,
            "error_message": None,
            "auth_bytes": b"",
            "session_lifetime_ms": 0,
        }
        peer.answer(asked, fields)

    data = random.Random(1).randbytes(1 << 20)
    with connected(script, receive_bytes=1 << 12) as (connection, _):
        body = SASL_AUTHENTICATE.request.encode({"auth_bytes": data})
        parts = [body[at : at + 999] for at in range(0, len(body), 999)]
        connection.send(SASL_AUTHENTICATE, parts, until=soon())
        connection.receive()
    assert seen == [data]


# ---------------------------------------------------------------------- muted


def test_a_mute_extends_the_deadlines_of_what_waits() -> None:
    """The time for which the broker does not read is not time that a request took (KIP-219)."""
    asked: list[Asked] = []

    def script(peer: Peer, one: Asked) -> None:
        asked.append(one)
        if len(asked) == 1:
            peer.answer(one, an_answer(1, throttle_ms=30_000))

    with connected(script) as (connection, broker):
        until = soon(0.2)
        send(connection, until=until)
        send(connection, until=until)
        assert connection.receive()[1]["producer_id"] == 1
        wait_until(lambda: time.monotonic() > until, within=WITHIN, what="the first deadline")
        assert connection.advance() is None
        broker.peers[0].answer(asked[1], an_answer(2))
        assert connection.receive()[1]["producer_id"] == 2


@pytest.mark.parametrize(
    ("throttle_ms", "expected_s"), [(5_000, 5.0), (2**31 - 1, LONGEST_MUTE_S), (-5, None)]
)
def test_a_request_waits_until_the_broker_reads_again(
    throttle_ms: int, expected_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A muted connection waits before it sends, but no answer makes it wait indefinitely."""
    slept: list[float] = []
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=slept.append)
    monkeypatch.setattr(module, "time", clock)

    def script(peer: Peer, one: Asked) -> None:
        peer.answer(one, an_answer(throttle_ms=throttle_ms))

    with connected(script) as (connection, _):
        for _ in range(2):
            connection.call(INIT_PRODUCER_ID, FIELDS, until=soon())
    if expected_s is None:
        assert not slept
    else:
        assert slept == [pytest.approx(expected_s, abs=1)]


# ---------------------------------------------------------------------- idle


def leave(peer: Peer) -> None:
    """Send bytes without a request."""
    peer.send(b"\0\0\0\4\0\0\0\7")


@pytest.mark.parametrize("what", [Peer.close, Peer.reset, Peer.finish, leave])
def test_a_connection_that_changed_while_idle_is_stale(what: Callable[[Peer], None]) -> None:
    """Closed, half closed, or with bytes without a request: no request is sent on it."""
    with connected(nothing) as (connection, broker):
        assert not connection.is_stale
        what(broker.peers[0])
        wait_until(lambda: connection.is_stale, within=WITHIN, what="a stale connection")
