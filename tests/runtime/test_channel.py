"""Signed lines: which are accepted and which are refused."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from eos_mirror.runtime.channel import Channel, End, LineRefusedError

KEY = "ab" * 32
Pair = tuple[Channel, Channel]
Sockets = tuple[socket.socket, socket.socket]
Connect = Callable[..., tuple[Pair, Sockets]]


def both_ends(driver_key: str, task_key: str) -> tuple[Pair, Sockets]:
    """Return a driver end and a task end, and the sockets below them."""
    here, there = socket.socketpair()
    for sock in (here, there):
        sock.settimeout(5)
    made: list[Channel] = []
    thread = threading.Thread(
        target=lambda: made.append(Channel(there, end=End.TASK, key=task_key))
    )
    thread.start()
    driver = Channel(here, end=End.DRIVER, key=driver_key)
    thread.join(5)
    return (driver, made[0]), (here, there)


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes connected ends and closes them."""
    made: list[Channel] = []

    def make(driver_key: str = KEY, task_key: str = KEY) -> tuple[Pair, Sockets]:
        pair, sockets = both_ends(driver_key, task_key)
        made.extend(pair)
        return pair, sockets

    yield make
    for channel in made:
        channel.close()


def line_of(task: Channel, wire: socket.socket) -> bytes:
    """Return the bytes of one message, read from the wire before the driver gets them."""
    task.send({"op": "HELLO"})
    return wire.recv(65536)


def test_a_message_arrives_as_it_was_sent(connect: Connect) -> None:
    """Both directions carry messages, in order."""
    (driver, task), _ = connect()

    task.send({"op": "HELLO", "n": 1})
    task.send({"op": "HELLO", "n": 2})
    driver.send({"cmd": "RUN"})

    assert [driver.receive(), driver.receive()] == [
        {"op": "HELLO", "n": 1},
        {"op": "HELLO", "n": 2},
    ]
    assert task.receive() == {"cmd": "RUN"}


def test_a_line_signed_with_another_key_is_refused(connect: Connect) -> None:
    """A line that is not signed with the key of the run is refused."""
    (driver, task), _ = connect(task_key="cd" * 32)

    task.send({"op": "HELLO"})

    with pytest.raises(LineRefusedError, match="signature"):
        driver.receive()


def test_a_changed_line_is_refused(connect: Connect) -> None:
    """A single changed byte is noticed."""
    (driver, task), (here, there) = connect()
    line = line_of(task, here)

    there.sendall(line.replace(b"HELLO", b"HELLQ"))

    with pytest.raises(LineRefusedError, match="signature"):
        driver.receive()


def test_a_repeated_line_is_refused(connect: Connect) -> None:
    """A line that was received is not accepted a second time."""
    (driver, task), (here, there) = connect()
    line = line_of(task, here)
    there.sendall(line + line)

    assert driver.receive() == {"op": "HELLO"}
    with pytest.raises(LineRefusedError, match="line 1 after line 1"):
        driver.receive()


def test_a_line_of_another_connection_is_refused(connect: Connect) -> None:
    """A recorded line means nothing on a new connection."""
    (_, task), (here, _) = connect()
    recorded = line_of(task, here)
    (driver, _), (_, other) = connect()

    other.sendall(recorded)

    with pytest.raises(LineRefusedError, match="signature"):
        driver.receive()


def test_a_line_sent_back_is_refused(connect: Connect) -> None:
    """The driver's own line, sent back, is not accepted as a task's."""
    (driver, _), (_, there) = connect()
    driver.send({"op": "HELLO"})

    there.sendall(there.recv(65536))

    with pytest.raises(LineRefusedError, match="signature"):
        driver.receive()


def test_a_stranger_cannot_fill_the_memory(connect: Connect) -> None:
    """An endless line is cut off before its sender has signed anything."""
    (driver, _), (_, there) = connect()
    sender = threading.Thread(target=lambda: there.sendall(b"x" * 70_000), daemon=True)
    sender.start()

    with pytest.raises(LineRefusedError, match="longer"):
        driver.receive()
