"""Encrypted connections to real brokers that demand a certificate of each client."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eos_mirror.errors import LoginImpossible
from eos_mirror.testing import KafkaCluster, Security
from eos_mirror.testing.installation import find_installation
from eos_mirror.testing.tls import make_keys
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.connection import Connection
from eos_mirror.wire.errors import Unreachable
from eos_mirror.wire.options import Config, security
from eos_mirror.wire.tls import SMALL_BYTES, joined
from tests.wire.conftest import pem_of
from tests.wire.fake_broker import fake_broker

pytestmark = pytest.mark.brokers

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def cluster(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A cluster with TLS."""
    protocols = "CLIENT:SSL,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT"
    settings = {"listener.security.protocol.map": protocols}
    with KafkaCluster(
        name="tls", security=Security.TLS, proxied=True, broker_config=settings
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def plain_port(cluster: KafkaCluster) -> int:
    """A port of the same broker without TLS."""
    return cluster.proxy_ports[1][1]


@pytest.fixture(scope="module")
def config(cluster: KafkaCluster) -> dict[str, str]:
    """The configuration of a client, as `settings` makes it of key stores."""
    found = cluster.client_config()
    certificate, key = pem_of(Path(found.pop("ssl.keystore.location")))
    del found["ssl.keystore.password"]
    return {**found, "ssl.certificate.pem": certificate, "ssl.key.pem": key}


def connect(config: Config, host: str = HOST, port: int | None = None) -> None:
    """Connect to the broker, and learn a topic through the connection."""
    address = f"{host}:{port or config['bootstrap.servers'].rpartition(':')[2]}"
    cluster = Cluster(address, security(config), client_id="test")
    try:
        cluster.learn(["no-such-topic"], until=time.monotonic() + 10)
    finally:
        cluster.close()


def without(config: Config, *names: str) -> dict[str, str]:
    """Return a configuration without some settings."""
    return {name: value for name, value in config.items() if name not in names}


def as_files(config: Config, folder: Path) -> dict[str, str]:
    """Return the same configuration with a folder of authorities, and with files."""
    found = without(config, "ssl.certificate.pem", "ssl.key.pem")
    for kind in ("certificate", "key"):
        file = folder / f"{kind}.pem"
        file.write_text(config[f"ssl.{kind}.pem"])
        found[f"ssl.{kind}.location"] = str(file)
    return found


def test_a_client_with_a_trusted_certificate_is_served(config: Config, tmp_path: Path) -> None:
    """Certificate and key as text or in files, the authority in a file or as text."""
    connect(config)
    connect(as_files(config, tmp_path))
    authority = Path(config["ssl.ca.location"]).read_text()
    with_text = {**without(config, "ssl.ca.location"), "ssl.ca.pem": f"# Zürich\n{authority}"}
    connect(with_text)


def test_one_file_may_hold_the_key_and_the_certificate(config: Config, tmp_path: Path) -> None:
    """Java's PEM key stores are such files, in any order."""
    store = tmp_path / "store.pem"
    store.write_text(config["ssl.key.pem"] + config["ssl.certificate.pem"])
    own = without(config, "ssl.certificate.pem", "ssl.key.pem")

    connect({**own, "ssl.certificate.location": str(store), "ssl.key.location": str(store)})


def test_a_key_is_read_where_there_are_no_files_in_memory(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only Linux has them."""
    monkeypatch.delattr(os, "memfd_create")

    connect(config)


def test_an_encrypted_key_needs_its_password(config: Config) -> None:
    """A wrong or missing password is an error; OpenSSL does not prompt for it."""
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    key = serialization.load_pem_private_key(config["ssl.key.pem"].encode(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"hunter2"),
    )
    encrypted = {**config, "ssl.key.pem": locked.decode()}

    connect({**encrypted, "ssl.key.password": "hunter2"})
    for wrong in ({}, {"ssl.key.password": "hunter3"}):
        with pytest.raises(LoginImpossible, match=r"ssl\.key\.password") as fault:
            security({**encrypted, **wrong})
        assert "hunter3" not in str(fault.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.ca.location", "/no/such/file.pem"),
        ("ssl.ca.pem", "no certificate"),
        ("ssl.cipher.suites", "NO-SUCH-CIPHER"),
        ("ssl.key.pem", "no key"),
    ],
)
def test_what_cannot_be_read_is_named(config: Config, name: str, value: str) -> None:
    """The operator corrects the setting that the error names."""
    named = "ssl.key" if name.startswith("ssl.key") else name
    with pytest.raises(LoginImpossible, match=named.replace(".", r"\.")):
        security({**config, name: value})


def test_a_client_without_a_certificate_is_refused(config: Config) -> None:
    """The error says what the broker demands."""
    with pytest.raises(Unreachable, match="client certificate"):
        connect(without(config, "ssl.certificate.pem", "ssl.key.pem"))


def test_a_client_with_a_strange_certificate_is_refused(config: Config, tmp_path: Path) -> None:
    """The broker trusts one certificate only."""
    certificate, key = pem_of(make_keys(find_installation().java, tmp_path).clients)

    with pytest.raises(Unreachable, match="client certificate"):
        connect({**config, "ssl.certificate.pem": certificate, "ssl.key.pem": key})


def test_a_broker_that_is_not_trusted_is_refused(config: Config) -> None:
    """By default the system's authorities are trusted; this broker has a certificate of its own."""
    with pytest.raises(Unreachable, match="its certificate is not trusted"):
        connect(without(config, "ssl.ca.location"))


def test_a_certificate_for_another_host_is_refused(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is verified, unless the configuration says otherwise."""
    found = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *rest: found(HOST, *rest))

    with pytest.raises(Unreachable, match="its certificate is for another host"):
        connect(config, "kafka.example")
    connect({**config, "ssl.endpoint.identification.algorithm": "none"}, "kafka.example")
    connect({**config, "ssl.endpoint.identification.algorithm": "https"}, "localhost.")


def test_verification_can_be_turned_off(config: Config) -> None:
    """The connection is encrypted, and that is all."""
    blind = {**without(config, "ssl.ca.location"), "enable.ssl.certificate.verification": "false"}

    connect(blind)


def test_a_plain_client_on_a_port_with_tls_is_told_so(config: Config) -> None:
    """The broker answers with a TLS alert, which is no answer of Kafka."""
    with pytest.raises(Unreachable, match="it speaks TLS on this port"):
        connect({"bootstrap.servers": config["bootstrap.servers"]})


def test_a_client_with_tls_on_a_plain_port_is_told_so(plain_port: int, config: Config) -> None:
    """A broker closes the connection; a server that answers anything else does not speak TLS."""
    with pytest.raises(Unreachable, match="speak no TLS on this port"):
        connect(config, port=plain_port)
    with fake_broker() as port, pytest.raises(Unreachable, match="TLS on this port"):
        connect(config, port=port)


def test_a_cipher_of_the_configuration_is_used(config: Config) -> None:
    """`ssl.cipher.suites` limits TLS 1.2; TLS 1.3 has ciphers of its own."""
    cipher = "ECDHE-ECDSA-AES256-GCM-SHA384"
    how = security({**config, "ssl.cipher.suites": cipher})
    assert how.tls is not None
    names = [one["name"] for one in how.tls.get_ciphers() if one["protocol"] != "TLSv1.3"]

    assert names == [cipher]
    port = int(config["bootstrap.servers"].rpartition(":")[2])
    Connection(HOST, port, how, client_id="test", until=time.monotonic() + 10).close()


def test_small_parts_are_joined_and_no_byte_is_lost() -> None:
    """Each part of a request would be a TLS record; large ones are not copied."""
    large = bytes(SMALL_BYTES)
    parts: list[bytes | bytearray | memoryview] = [b"head", b"a" * 100, large]
    parts += [b"b" * 10_000, b"c" * 10_000, memoryview(large), b"", b"d"]

    found = joined(parts)

    assert b"".join(found) == b"".join(parts)
    assert [len(part) for part in found] == [104, SMALL_BYTES, 10_000, 10_000, SMALL_BYTES, 1]
    assert found[1] is large
