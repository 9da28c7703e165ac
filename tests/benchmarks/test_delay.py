"""The delaying proxy: time is lost, and nothing else."""

import hashlib
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.delay import LOOPBACK, delayed

ONE_WAY_S = 0.025
MESSAGES = 100


@contextmanager
def through_a_proxy() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield both ends of a connection through a proxy."""
    with (
        socket.create_server((LOOPBACK, 0)) as server,
        socket.create_server((LOOPBACK, 0)) as spare,
    ):
        port = spare.getsockname()[1]
        spare.close()
        with delayed([(port, server.getsockname()[1])], one_way_ms=ONE_WAY_S * 1_000):
            server.accept()[0].close()  # the connection that waited for the proxy
            with socket.create_connection((LOOPBACK, port)) as client:
                accepted, _ = server.accept()
                with accepted:
                    client.settimeout(20)
                    accepted.settimeout(20)
                    yield client, accepted


def send_all(sender: socket.socket, data: bytes) -> None:
    """Send everything, and then the end of the stream."""
    sender.sendall(data)
    sender.shutdown(socket.SHUT_WR)


def test_a_round_trip_takes_twice_the_delay() -> None:
    """An answer arrives no sooner than after a round trip."""
    with through_a_proxy() as (client, server):
        began = time.monotonic()
        client.sendall(b"question")
        assert server.recv(100) == b"question"
        server.sendall(b"answer")
        assert client.recv(100) == b"answer"

        assert time.monotonic() - began >= 2 * ONE_WAY_S


def test_many_messages_are_in_flight_together() -> None:
    """A hundred messages that do not wait for each other take far less than a hundred delays."""
    with through_a_proxy() as (client, server):
        began = time.monotonic()
        for number in range(MESSAGES):
            client.sendall(b"%03d" % number)
        found = b""
        while len(found) < 3 * MESSAGES:
            found += server.recv(1_000)

        assert found == b"".join(b"%03d" % number for number in range(MESSAGES))
        assert ONE_WAY_S <= time.monotonic() - began < MESSAGES * ONE_WAY_S / 2


@pytest.mark.parametrize("count", [1, 30_000_000])
def test_every_byte_arrives_in_order_and_then_the_end(count: int) -> None:
    """A slow reader gets all bytes in order, and the end of the stream after them."""
    data = random.Random(count).randbytes(count)
    with through_a_proxy() as (client, server):
        sender = threading.Thread(target=send_all, args=(server, data))
        sender.start()
        found = hashlib.sha256()
        while part := client.recv(1 << 16):
            found.update(part)
        sender.join()

    assert found.digest() == hashlib.sha256(data).digest()
