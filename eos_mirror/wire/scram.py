"""
The client's half of SCRAM, without channel binding.

User names and passwords are used as they are: Kafka does not normalise them with SASLprep either.

Source: RFC 5802, RFC 7677; Kafka's ScramSaslClient and ScramFormatter.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Generator
from typing import Final

from eos_mirror.wire.errors import Malformed

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Hash function by mechanism."""

FEWEST_ITERATIONS: Final = 4_096
"""A server that asks for fewer would make the password easy to guess. Source: RFC 7677."""

MOST_ITERATIONS: Final = 1_000_000
"""About half a second of computing. Kafka stores at most 16,384: ScramMechanism.maxIterations."""

NO_BINDING: Final = "n,,"
NONCE_BYTES: Final = 24


def scram(
    mechanism: str, user: str, password: str, *, nonce: str | None = None
) -> Generator[bytes, bytes, None]:
    """
    Yield what the client says; what the server answers is sent in.

    Args:
        nonce: Tests repeat a known one.

    Raises:
        Malformed: The server does not know the password's key, or does not speak SCRAM. Nothing
            may be sent to it.
    """
    algorithm = HASHES[mechanism]
    nonce = nonce or secrets.token_urlsafe(NONCE_BYTES)
    first = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    challenge = _text((yield f"{NO_BINDING}{first}".encode()))
    whole_nonce, salt, iterations = _challenge(challenge, nonce)

    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)
    last = f"c={base64.b64encode(NO_BINDING.encode()).decode()},r={whole_nonce}"
    signed = f"{first},{challenge},{last}".encode()
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    stored_key = hashlib.new(algorithm, client_key).digest()
    signature = hmac.digest(stored_key, signed, algorithm)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))

    verdict = _text((yield f"{last},p={base64.b64encode(proof).decode()}".encode()))
    server_key = hmac.digest(salted, b"Server Key", algorithm)
    _check_verdict(verdict, hmac.digest(server_key, signed, algorithm))


def _challenge(text: str, nonce: str) -> tuple[str, bytes, int]:
    """Return the nonce, the salt and the number of iterations of the server's first message."""
    given = _attributes(text)
    if "m" in given:
        raise Malformed("the server demands an extension of SCRAM that does not exist")
    whole_nonce = given.get("r", "")
    if not whole_nonce.startswith(nonce) or whole_nonce == nonce:
        raise Malformed("the server did not add to the nonce of this login")
    count = given.get("i", "")
    if not (count.isascii() and count.isdecimal() and len(count) <= len(str(MOST_ITERATIONS))):
        raise Malformed("the server names no usable number of iterations")
    if not FEWEST_ITERATIONS <= int(count) <= MOST_ITERATIONS:
        raise Malformed(
            f"the server asks for {count} iterations; accepted are {FEWEST_ITERATIONS} to "
            f"{MOST_ITERATIONS}"
        )
    salt = _decoded(given.get("s", ""))
    if not salt:
        raise Malformed("the server sent no salt")
    return whole_nonce, salt, int(count)


def _check_verdict(text: str, expected: bytes) -> None:
    given = _attributes(text)
    if "e" in given:
        raise Malformed(f"the server reports {given['e'][:100]}")
    if not hmac.compare_digest(_decoded(given.get("v", "")), expected):
        raise Malformed("the server does not know the password: it is not the server it claims")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise Malformed("the server's message is no text") from exc


def _attributes(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.partition("=") for part in text.split(","))}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode(), validate=True)
    except binascii.Error as exc:
        raise Malformed("the server's message is no base64") from exc
