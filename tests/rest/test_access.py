"""Who may use the HTTP server."""

from http import HTTPStatus

import pytest

from eos_mirror.rest.access import refusal
from eos_mirror.settings.rest import RestSettings
from eos_mirror.settings.values import HttpAddress

LOCAL = RestSettings(listeners=(HttpAddress(False, "127.0.0.1", 8083),), key_store="", token="")
GUARDED = RestSettings(
    listeners=(HttpAddress(True, "mirror-7", 8083),), key_store="a.pem", token="secret"
)
FLOWS = "/mirror/flows"
PAUSE = "/mirror/flows/A->B/pause"
OWN = {"host": "127.0.0.1:8083"}


@pytest.mark.parametrize(
    ("headers", "writes", "status"),
    [
        (OWN, False, None),
        (OWN, True, None),
        ({"host": "localhost:8083", "origin": "http://localhost:8083"}, True, None),
        ({"host": "[::1]:8083"}, True, None),
        ({**OWN, "origin": "http://elsewhere.example"}, True, HTTPStatus.FORBIDDEN),
        ({**OWN, "origin": "null"}, True, HTTPStatus.FORBIDDEN),
        ({"host": "elsewhere.example:8083"}, True, HTTPStatus.FORBIDDEN),
        ({"host": "elsewhere.example:8083"}, False, HTTPStatus.FORBIDDEN),
        ({}, True, HTTPStatus.FORBIDDEN),
    ],
)
def test_a_page_from_elsewhere_cannot_use_a_server_without_a_token(
    headers: dict[str, str], writes: bool, status: HTTPStatus | None
) -> None:
    """A browser on this machine reaches the server: with its own Host or Origin, or not at all."""
    found = refusal(LOCAL, PAUSE if writes else FLOWS, headers, writes=writes)
    assert (found and found[0]) == status


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("Bearer secret", None),
        ("Bearer wrong", HTTPStatus.UNAUTHORIZED),
        ("secret", HTTPStatus.UNAUTHORIZED),
        ("", HTTPStatus.UNAUTHORIZED),
    ],
)
@pytest.mark.parametrize("writes", [True, False])
def test_other_machines_need_the_token_for_everything_but_probes(
    sent: str, writes: bool, status: HTTPStatus | None
) -> None:
    """A probe of Kubernetes cannot send one, and learns nothing about the flows."""
    headers = {"host": "mirror-7:8083", "authorization": sent}
    found = refusal(GUARDED, PAUSE if writes else FLOWS, headers, writes=writes)
    assert (found and found[0]) == status
    assert refusal(GUARDED, "/ready", {}, writes=False) is None


def test_with_a_token_on_this_machine_only_writes_need_it() -> None:
    """A reader there could read the files of the run as well."""
    local = RestSettings(listeners=LOCAL.listeners, key_store="", token="secret")
    assert refusal(local, FLOWS, OWN, writes=False) is None
    assert refusal(local, PAUSE, OWN, writes=True) is not None
    assert refusal(local, FLOWS, {"host": "elsewhere.example"}, writes=False) is not None
