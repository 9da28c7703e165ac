"""Makes the keys of a TLS cluster: one for brokers, one for all clients; each trusts the other."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PASSWORD: Final = "of no worth"  # noqa: S105
"""The keys are made for one cluster, and removed with it."""
TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """
    The key stores of a cluster.

    Attributes:
        brokers, clients: PKCS12 stores with a key and its certificate.
        trusted: PKCS12 store with the clients' certificate, for brokers.
        authority: The brokers' certificate as PEM, for clients.
    """

    brokers: Path
    clients: Path
    trusted: Path
    authority: Path

    def broker_settings(self) -> dict[str, object]:
        """Return the brokers' settings. Clients without a trusted key are refused."""
        return {
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": self.brokers,
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": self.trusted,
            "ssl.truststore.password": PASSWORD,
        }

    def librdkafka_config(self) -> dict[str, str]:
        """Return the configuration for librdkafka."""
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.authority),
            "ssl.keystore.location": str(self.clients),
            "ssl.keystore.password": PASSWORD,
        }

    def java_properties(self) -> dict[str, str]:
        """Return the configuration for Java clients."""
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.clients),
            "ssl.keystore.password": PASSWORD,
        }


def make_keys(java: Path, folder: Path) -> Keys:
    """
    Write the keys into a folder, with the `keytool` of this `java`.

    Raises:
        subprocess.CalledProcessError: `keytool` failed; `output` has the reason.
    """
    keys = Keys(
        brokers=folder / "brokers.p12",
        clients=folder / "clients.p12",
        trusted=folder / "trusted.p12",
        authority=folder / "authority.pem",
    )
    keytool = java.with_name("keytool")
    name = ["-alias", "key"]
    pair = ["-genkeypair", "-keyalg", "EC", "-validity", "3650", *name]
    here = ["-dname", "CN=127.0.0.1", "-ext", "SAN=ip:127.0.0.1,dns:localhost"]
    client = folder / "clients.pem"
    _run(keytool, *pair, *here, store=keys.brokers)
    _run(keytool, *pair, "-dname", "CN=client", store=keys.clients)
    _run(keytool, "-exportcert", "-rfc", *name, "-file", str(keys.authority), store=keys.brokers)
    _run(keytool, "-exportcert", "-rfc", *name, "-file", str(client), store=keys.clients)
    _run(keytool, "-importcert", "-noprompt", *name, "-file", str(client), store=keys.trusted)
    return keys


def _run(keytool: Path, *arguments: str, store: Path) -> None:
    where: Mapping[str, str] = {
        "-keystore": str(store),
        "-storetype": "PKCS12",
        "-storepass": PASSWORD,
    }
    options = [word for pair in where.items() for word in pair]
    subprocess.run(  # noqa: S603 - the Java that runs the brokers
        [str(keytool), *arguments, *options], check=True, capture_output=True, timeout=TIMEOUT_S
    )
