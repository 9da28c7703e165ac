"""
Reads Java's own key store format, JKS, for which there is no maintained library.

The format is documented by its implementation in OpenJDK: sun.security.provider.JavaKeyStore (the
file) and KeyProtector (the encryption of private keys). All numbers are big-endian.
"""

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Final

MAGIC: Final = bytes.fromhex("FEEDFEED")
PRIVATE_KEY, TRUSTED = 1, 2
"""The kinds of entries."""
WHITENER: Final = b"Mighty Aphrodite"
"""The constant that JavaKeyStore hashes between the password and the content."""
SHA1_BYTES: Final = 20
LONG_FORM: Final = 0x80
"""A DER length byte above this is the number of length bytes that follow."""


class WrongPasswordError(ValueError):
    """The password of the store is missing or wrong."""


class WrongKeyPasswordError(ValueError):
    """The password of the private key is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """
    The content of a key store, as DER.

    Attributes:
        trusted: The certificates that Java trusts if this is a trust store.
        chain: The certificate of the private key, and those that signed it.
        key: The private key as PKCS#8.
    """

    trusted: tuple[bytes, ...] = ()
    chain: tuple[bytes, ...] = ()
    key: bytes | None = field(default=None, repr=False)


@dataclass(slots=True)
class _Reader:
    data: bytes
    next_byte: int = 0

    def take(self, count: int) -> bytes:
        found = self.data[self.next_byte : self.next_byte + count]
        if len(found) < count:
            raise ValueError("the file is incomplete; name another file")
        self.next_byte += count
        return found

    def number(self, size: int = 4) -> int:
        return int.from_bytes(self.take(size))

    def block(self, size_of_length: int = 4) -> bytes:
        return self.take(self.number(size_of_length))

    def certificate(self, version: int) -> bytes:
        if version > 1:
            self.block(2)  # its type, always X.509
        return self.block()


def read_jks(data: bytes, password: str, key_password: str | None) -> Store:
    """
    Read a store. If it has several private keys, the first one counts.

    Args:
        password: Password of the store. If it is empty, the content is not checked, as in Java.
        key_password: Password of the private key. Without one, no key is decrypted.

    Raises:
        WrongPasswordError, WrongKeyPasswordError: Correct the password.
        ValueError: The file is damaged.
    """
    if password:
        digest = hashlib.sha1(usedforsecurity=False)  # the format has no other
        digest.update(password.encode("utf-16-be") + WHITENER + data[:-SHA1_BYTES])
        if not hmac.compare_digest(digest.digest(), data[-SHA1_BYTES:]):
            raise WrongPasswordError
    reader, trusted, keys = _Reader(data, len(MAGIC)), list[bytes](), list[_Key]()
    version = reader.number()
    for _ in range(reader.number()):
        kind = reader.number()
        reader.block(2)  # alias
        reader.number(8)  # time of creation
        if kind == PRIVATE_KEY:
            encrypted = reader.block()
            chain = tuple(reader.certificate(version) for _ in range(reader.number()))
            keys.append(_Key(encrypted, chain))
            trusted += chain[:1]
        elif kind == TRUSTED:
            trusted.append(reader.certificate(version))
        else:
            raise ValueError(f"entries of kind {kind} are unknown; name another file")
    if not keys or key_password is None:
        return Store(trusted=tuple(trusted))
    key = _decrypted(keys[0].encrypted, key_password)
    return Store(trusted=tuple(trusted), chain=keys[0].chain, key=key)


@dataclass(frozen=True, slots=True)
class _Key:
    encrypted: bytes
    chain: tuple[bytes, ...]


def _decrypted(info: bytes, password: str) -> bytes:
    """Decrypt an EncryptedPrivateKeyInfo: salt, key XOR hashes that chain from the salt, hash."""
    algorithm_and_data, _ = read_der(info)
    _, data = read_der(algorithm_and_data)
    protected, _ = read_der(data)
    secret = password.encode("utf-16-be")
    salt, body, check = (
        protected[:SHA1_BYTES],
        protected[SHA1_BYTES:-SHA1_BYTES],
        protected[-SHA1_BYTES:],
    )
    stream, last = bytearray(), salt
    while len(stream) < len(body):
        last = hashlib.sha1(secret + last, usedforsecurity=False).digest()
        stream += last
    key = bytes(a ^ b for a, b in zip(body, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key, usedforsecurity=False).digest(), check):
        raise WrongKeyPasswordError
    return key


def read_der(data: bytes) -> tuple[bytes, bytes]:
    """Return the content of the first DER element, and the elements after it."""
    reader = _Reader(data, 1)
    length = reader.number(1)
    if length > LONG_FORM:
        length = reader.number(length - LONG_FORM)
    return reader.take(length), data[reader.next_byte :]
