"""Keys for servers on the loopback interface."""

import base64
import os
import ssl
from pathlib import Path

import pytest

from eos_mirror.settings.key_stores import parsed
from eos_mirror.testing.installation import find_installation
from eos_mirror.testing.tls import PASSWORD, Keys, make_keys


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to the loopback interface do not go through a proxy of the environment."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture(scope="session")
def keys(own_brokers: None, tmp_path_factory: pytest.TempPathFactory) -> Keys:  # noqa: ARG001 (skips without)
    """Keys for 127.0.0.1 and for a client."""
    return make_keys(find_installation().java, tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def tls_files(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Certificate and key of a server on 127.0.0.1, as PEM files."""
    folder = tmp_path_factory.mktemp("pem")
    files = folder / "certificate.pem", folder / "key.pem"
    for file, pem in zip(files, pem_of(keys.brokers), strict=True):
        file.write_text(pem)
        os.chmod(file, 0o600)
    return files


def pem_of(store: Path) -> tuple[str, str]:
    """Return the certificates and the key of a store, as PEM."""
    found = parsed(store.read_bytes(), PASSWORD, PASSWORD)
    assert found.key is not None
    key = base64.encodebytes(found.key).decode()
    return (
        "".join(map(ssl.DER_cert_to_PEM_cert, found.chain)),
        f"-----BEGIN PRIVATE KEY-----\n{key}-----END PRIVATE KEY-----\n",
    )
