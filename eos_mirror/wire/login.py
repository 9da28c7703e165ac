"""
Logs in over Kafka's framing of SASL, and again before the session ends (KIP-152, KIP-368).

What a mechanism says is a generator: it yields what the client sends, and is sent the answers.
"""

import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from eos_mirror.wire.errors import ILLEGAL_SASL_STATE, Malformed, Refused
from eos_mirror.wire.messages import SASL_AUTHENTICATE, SASL_HANDSHAKE
from eos_mirror.wire.security import Caller, Login

SESSION_USED: Final = (0.85, 0.95)
"""Part of a session after which a connection logs in again; random, so that not all do so at the
same time. Source: Kafka's SaslClientAuthenticator."""

MOST_ROUNDS: Final = 4
"""SCRAM, the longest mechanism, has two."""

KVSEP: Final = "\x01"

Conversation = Generator[bytes, bytes, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """
    How one client logs in.

    Attributes:
        name: Kafka's, such as `PLAIN`.
        user: For error messages; empty if a token says who it is.
        begin: Starts a conversation that has to end before a moment in monotonic seconds.
    """

    name: str
    user: str = ""
    begin: Callable[[float], Conversation] = field(repr=False)


def login_with(mechanism: Mechanism) -> Login:
    """
    Return what logs a connection in.

    Raises (when called):
        Refused: The broker refuses the login, or does not know the mechanism.
        Malformed: It cannot prove that it knows the password, or does not speak SASL.
        Unanswered: It did not answer in time.
    """

    def log_in(caller: Caller, until: float) -> float | None:
        what = f"{caller.address}: log in with {mechanism.name}"
        if mechanism.user:
            what += f" as {mechanism.user}"
        conversation = mechanism.begin(until)
        said = next(conversation)  # before the handshake: it may have to ask for a token
        _agree(caller, mechanism.name, what, until)
        lifetime_ms = 0
        for _ in range(MOST_ROUNDS):
            answer = caller.call(SASL_AUTHENTICATE, {"auth_bytes": said}, until=until)
            if answer["error_code"]:
                raise Refused(answer["error_code"], what, answer["error_message"])
            lifetime_ms = answer["session_lifetime_ms"]
            try:
                said = conversation.send(bytes(answer["auth_bytes"] or b""))
            except StopIteration:
                return _again_s(lifetime_ms)
            except Malformed as exc:
                raise Malformed(f"{what}: {exc}") from exc
        raise Malformed(f"{what}: the broker does not finish")

    return log_in


def _agree(caller: Caller, mechanism: str, what: str, until: float) -> None:
    """Tell the broker the mechanism."""
    answer = caller.call(SASL_HANDSHAKE, {"mechanism": mechanism}, until=until)
    code = answer["error_code"]
    if code == ILLEGAL_SASL_STATE:
        detail = "no login is expected on this port; correct security.protocol"
        raise Refused(code, what, detail)
    if code:
        raise Refused(code, what, f"the broker offers {', '.join(answer['mechanisms'] or ())}")


def _again_s(lifetime_ms: int) -> float | None:
    """Return after how many seconds to log in again; None: the session has no end."""
    if lifetime_ms <= 0:
        return None
    return lifetime_ms / 1000 * random.uniform(*SESSION_USED)  # noqa: S311 (spreads logins)


def plain(user: str, password: str) -> Conversation:
    """Yield what PLAIN says (RFC 4616)."""
    yield f"\0{user}\0{password}".encode()


def bearer(token: str, extensions: Mapping[str, str]) -> Conversation:
    """
    Yield what OAUTHBEARER says (RFC 7628, KIP-342).

    Raises:
        Malformed: The broker reported an error, and then accepted the login.
    """
    pairs: dict[str, Any] = {"auth": f"Bearer {token}", **extensions}
    said = "".join(f"{name}={value}{KVSEP}" for name, value in pairs.items())
    fault = yield f"n,,{KVSEP}{said}{KVSEP}".encode()
    if fault:
        yield KVSEP.encode()  # the broker answers with the same reason as an error
        raise Malformed("the broker reported an error and accepted the login")
