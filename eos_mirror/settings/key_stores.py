"""
Translates Java's key stores and trust stores to PEM that librdkafka gets in memory.

The format is recognized by the content, as in Java: its types JKS and PKCS12 both read either.
"""

import ssl
from base64 import encodebytes
from functools import lru_cache
from pathlib import Path

from eos_mirror.settings.jks import (
    LONG_FORM,
    MAGIC,
    Store,
    WrongKeyPasswordError,
    WrongPasswordError,
    read_der,
    read_jks,
)
from eos_mirror.settings.security import Config, Given, Pending, Report, restored_pem

EXTRA = "pip install 'eos-mirror[pkcs12]'"
READ_BY_CONTENT = frozenset({"JKS", "PKCS12"})
DER_SEQUENCE = b"\x30"
"""The first byte of a PKCS12 file."""
STORES_KEPT = 16
"""Each client of each flow reads its stores, and a PKCS12 store takes up to 0.3 s to decrypt."""


class NoLibraryError(ValueError):
    """The library that reads PKCS12 is not installed."""


def take_truststore(pending: Pending, config: Config, report: Report) -> None:
    """Translate `ssl.truststore.*` to the certificate authorities that librdkafka trusts."""
    kind = _take_type(pending, "ssl.truststore.type")
    location = pending.pop("ssl.truststore.location", None)
    certificates = pending.pop("ssl.truststore.certificates", None)
    password = pending.pop("ssl.truststore.password", None)
    if certificates is not None:
        config["ssl.ca.pem"] = restored_pem(certificates.value)
    if location is None:
        return
    if kind == "PEM":  # its certificates are not secret: the password has no use
        config["ssl.ca.location"] = location.value
        return
    try:
        store = _read(location, kind, password, None)
    except ValueError as exc:
        report(str(exc))
        return
    if not store.trusted:
        report(
            f"{location.intro}: {location.value} has no certificates; run 'keytool "
            f"-importcert -keystore {location.value} -file ca.pem'"
        )
    config["ssl.ca.pem"] = "".join(map(ssl.DER_cert_to_PEM_cert, store.trusted))


def take_keystore(pending: Pending, config: Config, report: Report) -> None:
    """Translate `ssl.keystore.*` to librdkafka's certificate and private key."""
    kind = _take_type(pending, "ssl.keystore.type")
    for java, librdkafka in (
        ("ssl.keystore.certificate.chain", "ssl.certificate.pem"),
        ("ssl.keystore.key", "ssl.key.pem"),
    ):
        given = pending.pop(java, None)
        if given is not None:
            config[librdkafka] = restored_pem(given.value)
    location = pending.pop("ssl.keystore.location", None)
    password = pending.pop("ssl.keystore.password", None)
    if location is None:
        return
    if kind == "PEM":
        config["ssl.certificate.location"] = config["ssl.key.location"] = location.value
        return
    key_password = pending.pop("ssl.key.password", None) or password
    if password is None or key_password is None:
        report(f"{location.intro}: needs ssl.keystore.password, too")
        return
    try:
        store = _read(location, kind, password, key_password)
    except NoLibraryError:  # librdkafka reads PKCS12 itself, except old ciphers
        config["ssl.keystore.location"] = location.value
        config["ssl.keystore.password"] = password.value
        return
    except ValueError as exc:
        report(str(exc))
        return
    if store.key is None:
        report(
            f"{location.intro}: {location.value} has no private key; name the store into "
            "which 'keytool -genkeypair' or 'keytool -importkeystore' has put one"
        )
        return
    config["ssl.certificate.pem"] = "".join(map(ssl.DER_cert_to_PEM_cert, store.chain))
    config["ssl.key.pem"] = (
        f"-----BEGIN PRIVATE KEY-----\n{encodebytes(store.key).decode()}-----END PRIVATE KEY-----\n"
    )


def _take_type(pending: Pending, key: str) -> str:
    given = pending.pop(key, None)
    return given.value.upper() if given else "JKS"  # Java's default


def _read(location: Given, kind: str, password: Given | None, key_password: Given | None) -> Store:
    """
    Read a store.

    Raises:
        ValueError: The fault, with the line to correct.
    """
    name, place = location.value, f"{location.intro}: {location.value}"
    key_text = None if key_password is None else key_password.value
    if kind not in READ_BY_CONTENT:
        raise ValueError(
            f"{place}: the type {kind} cannot be read; run 'keytool -importkeystore -srckeystore "
            f"{name} -srcstoretype {kind} -destkeystore store.p12 -deststoretype PKCS12', and name "
            "store.p12 and PKCS12"
        )
    try:
        data = Path(name).read_bytes()
    except OSError as exc:
        raise ValueError(f"{place} cannot be read: {exc.strerror}; correct the path") from exc
    try:
        return parsed(data, password.value if password else "", key_text)
    except WrongPasswordError as exc:
        if password is None:
            raise ValueError(f"{place} needs a password; set ssl.truststore.password") from exc
        raise ValueError(f"{password.intro}: is not the password of {name}; correct it") from exc
    except WrongKeyPasswordError as exc:
        line = key_password.intro if key_password else location.intro
        raise ValueError(
            f"{line}: is not the password of the key in {name}; set ssl.key.password"
        ) from exc
    except ValueError as exc:
        raise type(exc)(f"{place}: {exc}") from exc


@lru_cache(maxsize=STORES_KEPT)
def parsed(data: bytes, password: str, key_password: str | None) -> Store:
    """
    Read the content of a JKS or PKCS12 file.

    Raises:
        ValueError: It cannot be read; says why, or its class does.
    """
    if data.startswith(MAGIC):
        return read_jks(data, password, key_password)
    if data.startswith(DER_SEQUENCE):
        return _read_pkcs12(data, password)
    if b"-----BEGIN " in data:
        raise ValueError("is a PEM file; set the type of this store to PEM")
    raise ValueError("is neither a JKS nor a PKCS12 store; name another file")


def _read_pkcs12(data: bytes, password: str) -> Store:
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415
    except ImportError as exc:
        raise NoLibraryError(f"a PKCS12 store needs a library; run {EXTRA}") from exc
    try:
        if password:
            found = pkcs12.load_pkcs12(data, password.encode())
        else:
            found = pkcs12.load_pkcs12(_without_mac(data), None)
    except ValueError as exc:
        raise WrongPasswordError from exc
    der = serialization.Encoding.DER
    others = [one.certificate for one in found.additional_certs]
    chain = [] if found.cert is None else [found.cert.certificate]
    trusted = tuple(one.public_bytes(der) for one in chain + others)
    if found.key is None:
        return Store(trusted=trusted)
    for _ in others:  # they can also be in another order, or not belong to the key
        chain += [one for one in others if one.subject == chain[-1].issuer and one not in chain][:1]
    key = found.key.private_bytes(
        der, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Store(trusted=trusted, chain=tuple(one.public_bytes(der) for one in chain), key=key)


def _without_mac(data: bytes) -> bytes:
    """Remove the integrity check of a PKCS12 file, which needs the password."""
    content, _ = read_der(data)
    _, after_version = read_der(content)
    _, mac = read_der(after_version)
    content = content[: len(content) - len(mac)]
    size = -(-len(content).bit_length() // 8)  # a store is longer than DER's short form
    return DER_SEQUENCE + bytes([LONG_FORM + size]) + len(content).to_bytes(size) + content
