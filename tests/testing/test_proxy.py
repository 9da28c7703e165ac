"""The fault proxy: against a small server that answers frames, and in front of a real broker."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import pytest
from confluent_kafka import KafkaException, Producer

from eos_mirror.testing import (
    Action,
    Api,
    Fault,
    FaultProxy,
    KafkaCluster,
    fault_proxies,
    read_topic,
    wait_until,
)
from eos_mirror.testing.proxy import read_frame, shut
from eos_mirror.testing.tcp_ports import PortLease

SOON = timedelta(seconds=5)
SHORT_S = 0.3
KNOCKS = 200  # enough to meet the moment between accept and cut


class Answerer:
    """Answers every request with its correlation id, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        """Stop listening and wait until every connection has ended."""
        shut(self._listener)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._threads.append(threading.Thread(target=self._answer, args=(connection,)))
                self._threads[-1].start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while frame := read_frame(connection):
                self.asked.append(int.from_bytes(frame[8:12]))
                connection.sendall(struct.pack(">i", 4) + frame[8:12])


class Asker:
    """A client on its own connection."""

    def __init__(self, port: int) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=SOON.seconds)

    def send(self, correlation_id: int, *, api: Api = Api.END_TXN, client: bytes = b"c") -> None:
        """Send a request."""
        body = struct.pack(">hhih", api, 0, correlation_id, len(client)) + client
        self.connection.sendall(struct.pack(">i", len(body)) + body)

    def answer(self) -> int | None:
        """Return the correlation id of the next answer; None when the connection was cut."""
        frame = read_frame(self.connection)
        return int.from_bytes(frame[4:8]) if frame else None

    def silent(self) -> bool:
        """Return whether no answer comes for a short while."""
        self.connection.settimeout(SHORT_S)
        try:
            return not self.connection.recv(1)
        except TimeoutError:
            return True
        finally:
            self.connection.settimeout(SOON.seconds)


@pytest.fixture
def broker() -> Iterator[Answerer]:
    """The server to which the proxy forwards."""
    answerer = Answerer()
    yield answerer
    answerer.close()


@pytest.fixture
def port() -> Iterator[int]:
    """The port on which the proxy listens."""
    lease = PortLease()
    yield lease.port
    lease.release()


@pytest.fixture
def proxy(broker: Answerer, port: int) -> Iterator[FaultProxy]:
    """A running proxy."""
    with FaultProxy(port, broker.port) as running:
        yield running


@pytest.fixture
def asker(proxy: FaultProxy, port: int) -> Iterator[Asker]:
    """A connected client."""
    assert proxy
    one = Asker(port)
    yield one
    one.connection.close()


def test_without_faults_everything_passes(proxy: FaultProxy, asker: Asker) -> None:
    """The proxy counts requests and changes nothing."""
    asker.send(1)
    asker.send(2, api=Api.PRODUCE)

    assert [asker.answer(), asker.answer()] == [1, 2]
    assert (proxy.seen(Api.END_TXN), proxy.seen(Api.PRODUCE), proxy.seen(Api.FETCH)) == (1, 1, 0)


@pytest.mark.parametrize("action", [Action.DELAY_REQUEST, Action.DELAY_RESPONSE])
def test_a_delay_ends_at_its_release(
    proxy: FaultProxy, asker: Asker, broker: Answerer, action: Action
) -> None:
    """A delayed request has not reached the broker; a delayed answer means that it has."""
    fault = proxy.inject(Fault(Api.END_TXN, action))

    asker.send(1)
    fault.wait_hit(within=SOON)

    assert asker.silent()
    assert broker.asked == ([] if action is Action.DELAY_REQUEST else [1])
    fault.release()
    assert asker.answer() == 1


def test_a_delay_ends_by_itself(proxy: FaultProxy, asker: Asker) -> None:
    """A delay with a duration needs no release."""
    fault = proxy.inject(Fault(Api.END_TXN, Action.DELAY_REQUEST, delay=timedelta(milliseconds=5)))

    asker.send(1)

    assert asker.answer() == 1
    assert fault.hits == 1


def test_a_dropped_answer_leaves_the_connection(
    proxy: FaultProxy, asker: Asker, broker: Answerer
) -> None:
    """The broker did the work, the client gets no answer, and the next request passes."""
    fault = proxy.inject(Fault(Api.END_TXN, Action.DROP_RESPONSE))

    asker.send(1)
    asker.send(2)

    assert asker.answer() == 2
    assert broker.asked == [1, 2]
    assert fault.hits == 1


@pytest.mark.parametrize("action", [Action.CUT_AFTER_REQUEST, Action.CUT_BEFORE_RESPONSE])
def test_a_cut_comes_after_the_broker_got_the_request(
    proxy: FaultProxy, asker: Asker, broker: Answerer, action: Action
) -> None:
    """There is an outcome that the client cannot know: the case that exactly-once must handle."""
    fault = proxy.inject(Fault(Api.END_TXN, action))

    asker.send(1)

    assert asker.answer() is None
    fault.wait_hit(within=SOON)
    wait_until(lambda: broker.asked == [1], within=SOON, what="the request at the broker")


def test_a_held_request_stalls_its_connection_until_release(
    proxy: FaultProxy, asker: Asker, broker: Answerer
) -> None:
    """Later requests on the connection wait, as on a slow network."""
    fault = proxy.inject(Fault(Api.END_TXN, Action.HOLD_REQUEST))

    asker.send(1)
    asker.send(2)
    fault.wait_hit(within=SOON)

    assert asker.silent()
    assert broker.asked == []
    fault.release()
    assert [asker.answer(), asker.answer()] == [1, 2]


def test_a_stolen_request_arrives_after_the_one_that_replaced_it(
    proxy: FaultProxy, asker: Asker, broker: Answerer, port: int
) -> None:
    """The client gives up and sends another request, and then the first one arrives late."""
    fault = proxy.inject(Fault(Api.END_TXN, Action.STEAL_REQUEST))

    asker.send(1)
    assert asker.answer() is None
    again = Asker(port)
    again.send(2)
    assert again.answer() == 2
    fault.release()

    wait_until(lambda: broker.asked == [2, 1], within=SOON, what="the late request")
    again.connection.close()


def test_a_fault_strikes_only_what_it_names(proxy: FaultProxy, asker: Asker) -> None:
    """Requests with another API or client pass, and those that `skip` and `times` exclude."""
    fault = proxy.inject(Fault(Api.END_TXN, Action.DROP_RESPONSE, skip=1, times=2, client_id="x"))

    for number, client in enumerate([b"c", b"x", b"x", b"x", b"x"]):
        asker.send(number, client=client)
    asker.send(9, api=Api.PRODUCE, client=b"x")

    assert [asker.answer() for _ in range(4)] == [0, 1, 4, 9]
    assert fault.hits == 2


def test_a_partition_cuts_and_refuses_until_it_heals(
    proxy: FaultProxy, asker: Asker, port: int
) -> None:
    """Old connections are cut, new ones get no answer, and after `heal` requests are answered."""
    proxy.part()
    assert asker.answer() is None
    for _ in range(KNOCKS):
        parted = Asker(port)
        with parted.connection, suppress(OSError):
            parted.send(1)
            assert parted.answer() is None

    proxy.heal()

    healed = Asker(port)
    with healed.connection:
        healed.send(2)
        assert healed.answer() == 2


def test_a_fault_that_never_happens_is_noticed() -> None:
    """A test that waits for its fault fails if the fault was never hit."""
    with pytest.raises(TimeoutError, match="CUT_AFTER_REQUEST of END_TXN"):
        Fault(Api.END_TXN, Action.CUT_AFTER_REQUEST).wait_hit(within=timedelta(milliseconds=10))


@pytest.mark.brokers
@pytest.mark.usefixtures("own_brokers")
def test_a_real_commit_survives_the_loss_of_its_answer(ns: str) -> None:
    """A commit of librdkafka whose EndTxn answer the proxy drops is visible exactly once."""
    with (
        KafkaCluster(proxied=True) as cluster,
        fault_proxies(cluster.proxy_ports) as proxies,
    ):
        cluster.create_topic(ns)
        fault = proxies[1].inject(Fault(Api.END_TXN, Action.CUT_BEFORE_RESPONSE))
        config = {"bootstrap.servers": cluster.proxied_bootstrap, "transactional.id": ns}
        producer = Producer({**config, "log_level": 0})
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce(ns, b"once")
        with suppress(KafkaException):  # this client repeats the commit or gives up; both are fine
            producer.commit_transaction(10)

        fault.wait_hit()
        wait_until(
            lambda: [record.value for record in read_topic(cluster.bootstrap, ns)[0]] == [b"once"],
            within=SOON,
            what="the record is committed, once",
        )
