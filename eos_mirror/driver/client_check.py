"""
Checks that the client library accepts the settings of every client of a configuration.

Each value was checked when the configuration was loaded. What only the library knows is checked
here: settings that exclude each other, and files that it cannot read.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eos_mirror.errors import ConfigError
from eos_mirror.kafka.client_trial import (
    refusal_of_admin,
    refusal_of_consumer,
    refusal_of_producer,
)
from eos_mirror.settings import clients
from eos_mirror.settings.connect import PREFIXES
from eos_mirror.settings.java_names import RENAMED
from eos_mirror.settings.model import FlowSettings, Settings

FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.keystore.location")
"""The library says no more of a missing file than that its format is wrong."""

JAVA = {
    "ssl.truststore.location": ("ssl.ca.location", "ssl.ca.pem"),
    "ssl.keystore.location": (*FILES[1:], "ssl.certificate.pem", "ssl.key.pem"),
    "ssl.keystore.password": ("ssl.keystore.location", "ssl.key.location"),
    "sasl.jaas.config": ("sasl.username", "sasl.password"),
    "sasl.mechanism": ("sasl.mechanism", "sasl.username", "sasl.password"),
}
"""What Java's settings become that are not only renamed (`settings/security.py`)."""

Trial = tuple[Callable[[Mapping[str, Any]], str], Mapping[str, Any]]

_NAME = re.compile(r"[a-z]+(?:\.[a-z]+)+")


def check_clients(settings: Settings) -> None:
    """
    Make each client of each flow once, without a connection.

    Raises:
        ConfigError: The library refuses some; one line each, with the lines that set the values.
    """
    faults = dict.fromkeys(fault for flow in settings.flows for fault in _faults(flow, settings))
    if faults:
        raise ConfigError(*faults)


def _faults(flow: FlowSettings, settings: Settings) -> Iterator[str]:
    for role, (refusal_of, config) in _trials(flow).items():
        refusal = _unreadable(config) or refusal_of(config)
        if refusal:
            owner = f"{flow.flow}.{PREFIXES[role]}"
            lines = _origins(refusal, owner, settings.origins) or str(settings.path)
            what = role.replace("_", " ")
            yield f"{lines}: flow {flow.flow}: the {what} cannot be made: {refusal}"


def _trials(flow: FlowSettings) -> dict[str, Trial]:
    producer = {**clients.target_producer(flow), "transactional.id": flow.flow.probe_id}
    return {
        "source_consumer": (refusal_of_consumer, clients.source_consumer(flow, slot=0)),
        "source_admin": (refusal_of_admin, clients.source_admin(flow)),
        "target_producer": (refusal_of_producer, producer),
        "target_admin": (refusal_of_admin, clients.target_admin(flow)),
    }


def _unreadable(config: Mapping[str, Any]) -> str:
    for name in FILES:
        try:
            if name in config:
                Path(config[name]).read_bytes()
        except OSError as exc:
            return f"{name}: {config[name]} cannot be read: {exc.strerror}"
    return ""


def _origins(refusal: str, owner: str, origins: Mapping[str, str]) -> str:
    """Return the lines of the configuration that set what a refusal names."""
    named = set(_NAME.findall(refusal))
    found: dict[str, None] = {}
    for key, place in origins.items():
        name = key.removeprefix(owner)
        becomes = JAVA.get(name) or (RENAMED.get(name, (name,))[0],)
        if key.startswith(owner) and named.intersection(becomes):
            found[f"{place}: {name}"] = None
    return "; ".join(found)
