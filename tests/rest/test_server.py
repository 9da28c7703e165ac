"""The routes of a run that has not started yet, over a real connection."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from eos_mirror.driver.driver import Driver
from eos_mirror.rest.server import served
from tests.driver.fakes import Events, settings_of
from tests.rest.client import Client

FLOW = "A-%3EB"


@contextmanager
def serving(folder: Path, **keys: str) -> Iterator[tuple[Client, Driver, Events]]:
    """Serve a driver that is not running."""
    written = {"listeners": "http://127.0.0.1:0"} | {
        key.replace("_", "."): value for key, value in keys.items()
    }
    settings, events = settings_of(folder, written), Events()
    driver = Driver(settings, on_event=events, stop=threading.Event())
    with served(settings.rest, lambda: driver, on_event=events):
        (listening,) = events.of("rest.listening")
        yield Client(listening["address"]), driver, events


def test_a_run_that_starts_is_alive_and_not_ready(tmp_path: Path) -> None:
    """Nothing claims health before the state of the partitions is known."""
    with serving(tmp_path) as (client, _, _):
        assert client.ask("/live") == (200, {"status": "live"})
        assert client.ask("/health")[0] == 200
        assert client.ask("/ready") == (503, {"status": "starting"})
        status, (flow,) = client.ask("/mirror/flows")
        assert (status, flow["flow"], flow["state"]) == (200, "A->B", "starting")
        assert client.ask(f"/mirror/flows/{FLOW}") == (200, flow)


def test_a_checked_standby_is_ready(tmp_path: Path) -> None:
    """It takes over as soon as the other run is gone: a rolling update may continue."""
    with serving(tmp_path) as (client, driver, _):
        driver.readiness.is_on_standby = True
        assert client.ask("/ready") == (200, {"status": "on standby"})
        assert client.ask("/mirror/flows")[1][0]["state"] == "on standby"


@pytest.mark.parametrize(
    ("path", "method", "body", "status"),
    [
        ("/", "GET", None, 404),
        ("/metrics", "GET", None, 404),
        ("/mirror/flows/B-%3EA", "GET", None, 404),
        (f"/mirror/flows/{FLOW}/topics/orders", "GET", None, 404),
        (f"/mirror/flows/{FLOW}/explode", "PUT", {}, 404),
        (f"/mirror/flows/{FLOW}/pause", "POST", {}, 405),
        (f"/mirror/flows/{FLOW}/pause", "PUT", [], 400),
        (f"/mirror/flows/{FLOW}/pause", "PUT", {"topic": "orders"}, 400),
        (f"/mirror/flows/{FLOW}/pause", "PUT", {"topics": "("}, 400),
        (f"/mirror/flows/{FLOW}/pause", "PUT", {"bytes_per_second": 5}, 400),
        (f"/mirror/flows/{FLOW}/throttle", "PUT", {"bytes_per_second": 0}, 400),
        (f"/mirror/flows/{FLOW}/throttle", "PUT", {"records_per_second": "5"}, 400),
        (f"/mirror/flows/{FLOW}/throttle", "PUT", {"records_per_second": True}, 400),
    ],
)
def test_a_wrong_request_has_an_answer_that_says_so(
    tmp_path: Path, path: str, method: str, body: Any, status: int
) -> None:
    """In the form of Kafka Connect."""
    with serving(tmp_path) as (client, _, _):
        found, answer = client.ask(path, method=method, body=body)
    assert (found, answer["error_code"]) == (status, status)
    assert answer["message"]


def test_a_page_from_elsewhere_is_refused(tmp_path: Path) -> None:
    """Before anything is done."""
    with serving(tmp_path) as (client, _, _):
        found, answer = client.ask(
            f"/mirror/flows/{FLOW}/pause", method="PUT", body={}, Origin="http://elsewhere.example"
        )
    assert (found, answer["message"]) == (403, "the Origin header is not this server")


def write_pem(path: Path) -> None:
    """Write a key and a certificate of localhost that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + certificate.public_bytes(Encoding.PEM)
    )


def test_https_and_the_token_guard_a_server(tmp_path: Path) -> None:
    """The PEM file has the key and the certificate; a write without the token does nothing."""
    pem = tmp_path / "server.pem"
    write_pem(pem)
    keys = {
        "listeners": "https://localhost:0",
        "listeners_https_ssl_keystore_location": str(pem),
        "rest_token": "secret",
    }
    with serving(tmp_path, **keys) as (_, driver, events):
        (listening,) = events.of("rest.listening")
        client = Client(listening["address"], authority=pem)
        assert listening["address"].startswith("https://localhost:")
        assert client.ask("/live") == (200, {"status": "live"})
        path = f"/mirror/flows/{FLOW}/explode"
        assert client.ask(path, method="PUT", body={})[0] == 401
        sent = {"Authorization": "Bearer secret"}
        assert client.ask(path, method="PUT", body={}, **sent)[0] == 404
        assert not driver.readiness.is_settled


def test_a_file_that_is_no_pem_is_a_warning(tmp_path: Path) -> None:
    """The reason names the key."""
    pem = tmp_path / "server.pem"
    pem.write_text("no key")
    keys = {
        "listeners": "https://localhost:0",
        "listeners.https.ssl.keystore.location": str(pem),
    }
    settings, events = settings_of(tmp_path, keys), Events()
    driver = Driver(settings, on_event=events, stop=threading.Event())
    with served(settings.rest, lambda: driver, on_event=events):
        pass
    (failed,) = events.of("rest.failed")
    assert "listeners.https.ssl.keystore.location is no PEM file" in failed["reason"]


def test_a_port_that_is_taken_is_a_warning(tmp_path: Path) -> None:
    """Mirroring matters more than its server."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        settings, events = settings_of(tmp_path, {"listeners": address}), Events()
        driver = Driver(settings, on_event=events, stop=threading.Event())
        with served(settings.rest, lambda: driver, on_event=events):
            pass
    (failed,) = events.of("rest.failed")
    assert failed["reason"] == f"listeners = {address}: cannot listen there: Address already in use"
    assert not events.of("rest.listening")


@pytest.mark.parametrize(
    ("keys", "note"),
    [
        ({"listeners": "http://:8083"}, "it needs https and rest.token"),
        ({"listeners": "https://mirror-7:8083"}, "https needs listeners.https.ssl.keystore"),
        ({"listeners": "http://127.0.0.1:1, http://[::1]:1"}, "only http://127.0.0.1:1 counts"),
        ({"listeners": "PLAINTEXT://:9092"}, "PLAINTEXT://:9092 is no address such as http://"),
        ({"listeners": "http://127.0.0.1"}, "http://127.0.0.1 is no address such as http://"),
    ],
)
def test_what_is_not_served_is_a_note(tmp_path: Path, keys: dict[str, str], note: str) -> None:
    """The file of a MirrorMaker 2 that served REST starts here."""
    (text,) = settings_of(tmp_path, keys).notes
    assert note in text
