"""The client's half of SCRAM against the examples of its RFCs, and against hostile servers."""

import base64
import hashlib
import hmac
import time

import pytest

from eos_mirror.wire import scram as module
from eos_mirror.wire.errors import Malformed
from eos_mirror.wire.login import Mechanism, login_with
from eos_mirror.wire.scram import MOST_ITERATIONS, scram
from tests.wire.fake_broker import Scripted, said

SALT = base64.b64encode(b"salt and pepper").decode()
SECRET = "hunter2"


def test_the_example_of_rfc_7677() -> None:
    """SCRAM-SHA-256 says what the RFC says, and accepts the server's signature."""
    talk = scram("SCRAM-SHA-256", "user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")

    assert next(talk) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    proof = talk.send(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert proof == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    with pytest.raises(StopIteration):
        talk.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_the_example_of_rfc_5802(monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages do not depend on the hash function; SHA-1 itself is not offered."""
    monkeypatch.setitem(module.HASHES, "SCRAM-SHA-1", "sha1")
    talk = scram("SCRAM-SHA-1", "user", "pencil", nonce="fyko+d2lbbFgONRv9qkxdawL")

    assert next(talk) == b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL"
    nonce = "fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j"
    proof = talk.send(f"r={nonce},s=QSXCR+Q6sek8bf92,i=4096".encode())
    assert proof == f"c=biws,r={nonce},p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=".encode()
    with pytest.raises(StopIteration):
        talk.send(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=")


def test_a_user_name_is_escaped() -> None:
    """Commas and equal signs separate attributes."""
    assert next(scram("SCRAM-SHA-256", "a=b,c", SECRET, nonce="x")) == b"n,,n=a=3Db=2Cc,r=x"


class Server:
    """A server that knows the password. Attributes change what it says."""

    extra = "server"
    iterations = "4096"
    salt = SALT
    prefix = ""
    password = SECRET

    def __init__(self) -> None:
        self._first = ""
        self._challenge = ""

    def answer(self, heard: bytes) -> bytes:
        """Return what it answers to a message of the client."""
        text = heard.decode()
        if text.startswith("n,,"):
            self._first = text.removeprefix("n,,")
            nonce = self._first.partition("r=")[2]
            whole = f"r={nonce}{self.extra}" if self.extra != "other" else "r=stranger"
            self._challenge = f"{self.prefix}{whole},s={self.salt},i={self.iterations}"
            return self._challenge.encode()
        last = text.rpartition(",p=")[0]
        salted = hashlib.pbkdf2_hmac(
            "sha256", self.password.encode(), base64.b64decode(SALT), int(self.iterations)
        )
        key = hmac.digest(salted, b"Server Key", "sha256")
        signed = f"{self._first},{self._challenge},{last}".encode()
        return b"v=" + base64.b64encode(hmac.digest(key, signed, "sha256"))


def log_in(server: Server) -> Scripted:
    """Log in to a server with the right password."""
    mechanism = Mechanism(
        name="SCRAM-SHA-256", user="me", begin=lambda _: scram("SCRAM-SHA-256", "me", SECRET)
    )
    broker = Scripted(lambda heard: said(server.answer(heard)))
    login_with(mechanism)(broker, time.monotonic() + 10)
    return broker


def test_a_server_that_knows_the_password_is_accepted() -> None:
    """The hostile servers below are refused for their one difference."""
    assert len(log_in(Server()).heard) == 2


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        ({"extra": "other"}, "did not add to the nonce"),
        ({"extra": ""}, "did not add to the nonce"),
        ({"iterations": "4095"}, "asks for 4095 iterations"),
        ({"iterations": str(MOST_ITERATIONS + 1)}, "iterations"),
        ({"iterations": "9" * 5000}, "no usable number"),
        ({"iterations": "-1"}, "no usable number"),
        ({"iterations": "²"}, "no usable number"),
        ({"salt": ""}, "no salt"),
        ({"salt": "%%%"}, "no base64"),
        ({"prefix": "m=later,"}, "extension"),
        ({"password": "other"}, "does not know the password"),
    ],
)
def test_a_hostile_server_is_refused(lie: dict[str, str], reason: str) -> None:
    """A server proves that it knows the password, and cannot make us compute without end."""
    server = Server()
    for name, value in lie.items():
        setattr(server, name, value)
    started = time.monotonic()

    with pytest.raises(
        Malformed, match=f"broker-1:9092: log in with .* as me: .*{reason}"
    ) as fault:
        log_in(server)

    assert SECRET not in str(fault.value)
    assert time.monotonic() - started < 5
