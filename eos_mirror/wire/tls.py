"""Encrypts connections: the settings of TLS, the handshake, and why one fails in plain words."""

import os
import socket
import ssl
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from eos_mirror.errors import LoginImpossible

PROBE: Final = "probe"
SYSTEM_AUTHORITIES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where systems keep their authorities, if Python's OpenSSL was built for another system."""

NOT_TRUSTED: Final = frozenset({2, 18, 19, 20, 21})
WRONG_NAME: Final = frozenset({62, 63, 64})
"""OpenSSL's codes of refused certificates: X509_V_ERR_*."""

NO_TLS: Final = (
    "it does not speak TLS on this port; correct security.protocol, or the port in "
    "bootstrap.servers"
)
SPEAKS_TLS: Final = "it speaks TLS on this port; set security.protocol to SSL or SASL_SSL"
CLOSED: Final = (
    "it closed the connection during the TLS handshake, as brokers do that speak no TLS on this "
    "port; check security.protocol"
)
NEEDS_CERTIFICATE: Final = "it demands a client certificate; set ssl.keystore.location"
REFUSES_CERTIFICATE: Final = (
    "it refuses the client certificate, or demands one; check ssl.keystore.location"
)
REASONS: Final = {
    "WRONG_VERSION_NUMBER": NO_TLS,
    "PACKET_LENGTH_TOO_LONG": NO_TLS,
    "RECORD_LAYER_FAILURE": NO_TLS,
    "HTTP_REQUEST": NO_TLS,
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": NEEDS_CERTIFICATE,
    "SSLV3_ALERT_BAD_CERTIFICATE": REFUSES_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": REFUSES_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": REFUSES_CERTIFICATE,
    "TLSV1_ALERT_UNKNOWN_CA": REFUSES_CERTIFICATE,
    "SSLV3_ALERT_HANDSHAKE_FAILURE": (
        "it accepts none of our TLS versions and ciphers, or demands a client certificate"
    ),
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks no TLS version from 1.2 on",
    "UNSUPPORTED_PROTOCOL": "it speaks no TLS version from 1.2 on",
}
"""What an error of OpenSSL says about the broker."""

SMALL_BYTES: Final = 16 << 10
"""Size of a TLS record: a larger part fills records of its own."""

ALERT: Final = b"\x15\x03"
"""How a TLS alert begins; as the size of an answer it would be more than 350 MB."""

Config = Mapping[str, str]


# ---------------------------------------------------------------------- settings


def tls_context(config: Config) -> ssl.SSLContext:
    """
    Return the context for a client configuration in librdkafka's names.

    Raises:
        LoginImpossible: A certificate or a key cannot be read; names the setting.
    """
    context = trusting(config.get("ssl.ca.location"), config.get("ssl.ca.pem"), names="ssl.ca")
    ciphers = config.get("ssl.cipher.suites")
    if ciphers:
        with _named("ssl.cipher.suites"):
            context.set_ciphers(ciphers)
    if config.get("ssl.endpoint.identification.algorithm", "https").lower() == "none":
        context.check_hostname = False
    if config.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _present(context, config)
    return context


def trusting(location: str | None, pem: str | None, *, names: str) -> ssl.SSLContext:
    """
    Return a context that trusts these authorities; those of the system if none are given.

    Args:
        location: A file or a folder.
        names: How the settings begin, for errors.

    Raises:
        LoginImpossible: They cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if pem:
        with _named(f"{names}.pem"):
            context.load_verify_locations(cadata=pem.encode("ascii", "ignore").decode())
    if location and location != PROBE:
        with _named(f"{names}.location = {location}"):
            folder = Path(location).is_dir()
            context.load_verify_locations(**{"capath" if folder else "cafile": location})
    if not pem and location in {None, "", PROBE}:
        _trust_system(context)
    return context


def _trust_system(context: ssl.SSLContext) -> None:
    context.load_default_certs()
    paths = ssl.get_default_verify_paths()
    if not paths.cafile and not paths.capath:
        found = next((path for path in SYSTEM_AUTHORITIES if Path(path).is_file()), None)
        if found is not None:
            context.load_verify_locations(cafile=found)


def _present(context: ssl.SSLContext, config: Config) -> None:
    """Load the certificate and the key of this client, if there are any."""
    with ExitStack() as files:
        certificate = _path(config, "ssl.certificate", files)
        if certificate is None:
            return
        key = _path(config, "ssl.key", files)
        # an empty password: without any, OpenSSL would ask for it on the terminal
        password = config.get("ssl.key.password", "")
        with _named(_client_settings(config)):
            context.load_cert_chain(certificate, key, password=password)


def _client_settings(config: Config) -> str:
    places = [config.get(f"ssl.{kind}.location") for kind in ("certificate", "key")]
    files = " and ".join(dict.fromkeys(filter(None, places)))
    return f"ssl.keystore.* or ssl.key.password{files and f' ({files})'}"


def _path(config: Config, name: str, files: ExitStack) -> str | None:
    pem = config.get(f"{name}.pem")
    if pem:
        return files.enter_context(_as_file(pem))
    return config.get(f"{name}.location") or None


@contextmanager
def _as_file(pem: str) -> Iterator[str]:
    """Give a file with a text: OpenSSL's functions for keys read nothing else. In memory."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("pem"), "wb") as file:
            file.write(pem.encode())
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as file:  # only this user can read it
            file.write(pem.encode())
            file.flush()
            yield file.name


@contextmanager
def _named(setting: str) -> Iterator[None]:
    """Name the setting that cannot be used. OpenSSL's messages repeat no secrets."""
    try:
        yield
    except ssl.SSLError as exc:
        reason = _words(exc)
        raise LoginImpossible(f"{setting}: cannot be used: {reason}") from exc
    except OSError as exc:
        raise LoginImpossible(f"{setting}: {exc.strerror or exc}") from exc


# ---------------------------------------------------------------------- connections


def encrypted(plain: socket.socket, context: ssl.SSLContext, host: str) -> ssl.SSLSocket:
    """
    Return the encrypted socket. The timeout of the plain one limits the whole handshake.

    Raises:
        OSError: With a plain sentence. The plain socket is closed then.
    """
    try:
        return context.wrap_socket(plain, server_hostname=host.rstrip("."))
    except TimeoutError as exc:
        raise TimeoutError("it did not answer the TLS handshake in time") from exc
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError) as exc:
        raise ConnectionError(CLOSED) from exc
    except OSError as exc:
        raise ConnectionError(reason_of(exc)) from exc
    except ValueError as exc:
        raise ConnectionError(f"{host!r} is no host name for a certificate") from exc


def joined(parts: Iterable[bytes | bytearray | memoryview]) -> list[bytes | bytearray | memoryview]:
    """
    Return the same bytes in fewer parts: each part costs a system call and a TLS record.

    For a request with 200 small batches, this takes a tenth of the time: benchmarks/tls_parts.py.
    """
    found: list[bytes | bytearray | memoryview] = []
    small = bytearray()
    for part in parts:
        if small and len(small) + len(part) > SMALL_BYTES:
            found.append(small)
            small = bytearray()
        if len(part) < SMALL_BYTES:
            small += part
        else:
            found.append(part)
    return [*found, small] if small else found


def reason_of(exc: OSError) -> str:
    """Return why a connection failed, in words for people."""
    if isinstance(exc, ssl.SSLCertVerificationError):
        if exc.verify_code in WRONG_NAME:
            return (
                f"its certificate is for another host: {exc.verify_message.rstrip('.')}; connect "
                "to a name in the certificate, or leave ssl.endpoint.identification.algorithm empty"
            )
        if exc.verify_code in NOT_TRUSTED:
            return (
                f"its certificate is not trusted ({exc.verify_message}); "
                "add its authority to ssl.truststore.location"
            )
        return f"its certificate is not accepted: {exc.verify_message}"
    if isinstance(exc, ssl.SSLError):
        return REASONS.get(_reason(exc), f"TLS failed: {_words(exc)}")
    return str(exc)


def _reason(exc: ssl.SSLError) -> str:
    """Return OpenSSL's name of an error; errors that Python finds have a text instead."""
    return getattr(exc, "reason", None) or str(exc)


def _words(exc: ssl.SSLError) -> str:
    return _reason(exc).replace("_", " ").lower()


def is_alert(size: bytes | bytearray) -> bool:
    """Return True if the size of an answer is the beginning of a TLS alert."""
    return size.startswith(ALERT)
