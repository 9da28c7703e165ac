"""The settings of the HTTP server. The declaration of a field is also its row in the table."""

import ipaddress
from dataclasses import dataclass
from typing import Annotated, Final

from eos_mirror.settings.key import Key
from eos_mirror.settings.values import HttpAddress, HttpListeners, Text

LOCALHOST: Final = "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestSettings:
    """Where the HTTP server of a run listens, and who may use it."""

    listeners: Annotated[
        HttpListeners,
        Key(
            "listeners",
            "",
            "Address of the [HTTP server](rest.md), such as `http://127.0.0.1:8083`; the first one "
            "counts. An address that other machines reach needs `https` and `rest.token`.",
            shown_default="none",
        ),
    ]
    key_store: Annotated[
        Text,
        Key(
            "listeners.https.ssl.keystore.location",
            "",
            "For `https`: a PEM file with the key, not encrypted, and the certificates.",
            shown_default="none",
        ),
    ]
    token: Annotated[
        Text,
        Key(
            "rest.token",
            "",
            "What clients of the HTTP server send as `Authorization: Bearer TOKEN`.",
            shown_default="none",
        ),
    ]

    @property
    def listener(self) -> HttpAddress | None:
        """Return where the server listens; None if nothing is served."""
        return next((one for one in self.listeners if isinstance(one, HttpAddress)), None)

    @property
    def is_local(self) -> bool:
        """Return True if only this machine reaches the server."""
        return self.listener is not None and is_loopback(self.listener.host)

    @property
    def obstacle(self) -> str:
        """Return why nothing is served at the configured address; empty if something is."""
        if self.listener is None:
            return ""
        if self.listener.is_encrypted and not self.key_store:
            return "https needs listeners.https.ssl.keystore.location"
        if self.is_local:
            return ""
        missing = [
            *(["https"] if not self.listener.is_encrypted else []),
            *(["rest.token"] if not self.token else []),
        ]
        if not missing:
            return ""
        return f"other machines reach this address, so it needs {' and '.join(missing)}"

    @property
    def notes(self) -> list[str]:
        """Return what of the addresses has no effect."""
        unused = [f"no effect: {self.obstacle}"] if self.obstacle else []
        for one in self.listeners:
            if isinstance(one, str):
                unused.append(f"no effect: {one} is no address such as http://127.0.0.1:8083")
            elif one is not self.listener:
                unused.append(f"no effect: only {self.listener} counts, not {one}")
        return unused


def is_loopback(host: str) -> bool:
    """Return True for an address that only this machine reaches."""
    if host == LOCALHOST:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
