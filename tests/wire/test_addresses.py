"""A name may have several addresses, of both families; one that accepts is enough."""

import socket
import time
from contextlib import closing
from typing import Any

import pytest

from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.connection import Connection
from eos_mirror.wire.errors import Unreachable
from eos_mirror.wire.options import security
from eos_mirror.wire.security import PLAINTEXT, Security
from tests.wire.fake_broker import fake_broker

NAME = "kafka.example"


def closed_port() -> int:
    """Return a port on which nothing listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port: int = listener.getsockname()[1]
        return port


def resolves_to(monkeypatch: pytest.MonkeyPatch, *found: tuple[socket.AddressFamily, int]) -> None:
    """Let the name have these addresses on the loopback interface, in this order."""

    def resolved(host: str, port: int, family: int, kind: int) -> list[Any]:  # noqa: ARG001
        assert host == NAME
        hosts = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}
        return [
            (one, kind, 0, "", (hosts[one], number))
            for one, number in found
            if family in {socket.AF_UNSPEC, one}
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)


def connect(how: Security = PLAINTEXT, *, within_s: float = 5.0) -> None:
    """Connect to the name."""
    until = time.monotonic() + within_s
    Connection(NAME, 9092, how, client_id="test", until=until).close()


def test_every_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones may belong to a broker that is down, or to a family without a route."""
    with fake_broker() as port:
        down = (socket.AF_INET, closed_port()), (socket.AF_INET6, closed_port())
        resolves_to(monkeypatch, *down, (socket.AF_INET, port))

        connect()


def test_a_name_without_a_broker_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the host, and why the last address failed."""
    resolves_to(monkeypatch, (socket.AF_INET, closed_port()), (socket.AF_INET, closed_port()))

    with pytest.raises(Unreachable, match=r"kafka\.example:9092: .*refused"):
        connect()


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_a_broker_may_have_an_ipv6_address_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """`broker.address.family` limits the addresses."""
    with fake_broker(socket.AF_INET6) as port:
        resolves_to(monkeypatch, (socket.AF_INET6, port), (socket.AF_INET, closed_port()))

        connect()
        connect(security({"broker.address.family": "v6"}))
        with pytest.raises(Unreachable):
            connect(security({"broker.address.family": "v4"}))


@pytest.mark.parametrize("prefix", ["", "SASL_SSL://"])
def test_a_bootstrap_address_may_be_ipv6_and_name_a_protocol(
    monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    """Both notations are librdkafka's."""
    asked: list[object] = []

    def resolved(host: str, port: int, *_: object) -> list[Any]:
        asked.append((host, port))
        raise OSError("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    cluster = Cluster(f"{prefix}[::1]:9094, {prefix}b:9095", PLAINTEXT, client_id="test")
    with pytest.raises(Unreachable):
        cluster.any_broker(until=time.monotonic() + 5)

    assert asked == [("::1", 9094), ("b", 9095)]
