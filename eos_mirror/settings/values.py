"""
The types of values. Each converts configuration text to a typed value, checked by pydantic.

Each type is an `Annotated` with its parser and, as `Kind`, its name on the reference page.
A parser raises a ValueError that says what it expected.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator

from eos_mirror.core.flow import INTERNAL_PREFIX
from eos_mirror.core.plan import MAX_TOPIC_CHARS
from eos_mirror.core.plugins import find_class
from eos_mirror.core.policy import Rename
from eos_mirror.core.start_positions import StartRule, encode_rules, rule_of
from eos_mirror.settings.patterns import as_java_reads, split_patterns


@dataclass(frozen=True, slots=True)
class Kind:
    """Name of a type on the reference page, and the unit of its numbers."""

    name: str
    unit: str = ""


class Runtime(Enum):
    """Where tasks run."""

    SPARK = "spark"
    LOCAL = "local"


class BoundaryMode(Enum):
    """When a transaction ends: by time and size, or after every poll."""

    INTERVAL = "interval"
    POLL = "poll"


class AclMode(Enum):
    """Which ACLs of a source topic are copied to its remote topic."""

    READ = "read"
    FULL = "full"


class WhenDeleted(Enum):
    """What a flow does when one of its source topics is deleted."""

    KEEP = "keep"
    STOP = "stop"


class DefaultsFrom(Enum):
    """Which cluster's defaults a remote topic has."""

    SOURCE = "source"
    TARGET = "target"


class Exporter(Enum):
    """Where metrics are exported to."""

    PROMETHEUS = "prometheus"
    OTLP = "otlp"


class NameFormat(Enum):
    """
    A format of the names of MirrorMaker 2's metrics.

    Source: KIP-1280, MirrorConnectorConfig of Kafka 4.3.
    """

    LEGACY = "legacy"
    NEW = "new"


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class HttpAddress(NamedTuple):
    """Where an HTTP server listens."""

    is_encrypted: bool
    host: str
    port: int

    def __str__(self) -> str:
        scheme = "https" if self.is_encrypted else "http"
        return f"{scheme}://{Address(self.host, self.port)}"


class PolicyClass(StrEnum):
    """The replication policies of MirrorMaker 2 that are built in."""

    DEFAULT = "DefaultReplicationPolicy"
    IDENTITY = "IdentityReplicationPolicy"


MM2_PACKAGE = "org.apache.kafka.connect.mirror."
WELL_KNOWN = {
    "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy": PolicyClass.IDENTITY,
}
"""Java classes of others that do what a built-in policy does."""
RESERVED_ALIASES = frozenset({"admin", "consumer", "producer", "sasl", "spark", "ssl", "verify"})
_COMMENT = re.compile(r"(?:^|\s)#.*")
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 (how Kafka reads a missing host)
_HOST_PORT = re.compile(r"(?:[A-Za-z]+://)?(?:\[[0-9A-Fa-f:.]+\]|[\w%.-]+):\d{1,5}")
_TOPIC_CHARACTERS = re.compile(r"[A-Za-z0-9._-]+")
_BROKER_DEFAULT = "-1"
_LAST_PORT = 65535
_LARGEST = 2**31 - 1
"""Kafka's own limit for an int; keeps every duration inside a timedelta."""


def trailing_comment(text: str) -> str | None:
    """Return the comment that the user tried to write after a value, if any."""
    match = _COMMENT.search(text)
    return match[0].strip() if match else None


def split_list(text: str) -> tuple[str, ...]:
    """Split text at commas and trim; blank text has no items. Source: Kafka's ConfigDef."""
    return tuple(item.strip() for item in text.split(",")) if text.strip() else ()


def _boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError("expected true or false")


def _positive(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text) or not 1 <= int(text) <= _LARGEST:
        raise ValueError(f"expected a whole number from 1 to {_LARGEST}")
    return int(text)


def _milliseconds(text: str) -> timedelta:
    return timedelta(milliseconds=_positive(text))


def _seconds(text: str) -> timedelta:
    return timedelta(seconds=_positive(text))


def _broker_default(text: str) -> int | None:
    return None if text == _BROKER_DEFAULT else _positive(text)


def _patterns(text: str) -> tuple[re.Pattern[str], ...]:
    return tuple(as_java_reads(item) for item in split_patterns(text))


def _aliases(text: str) -> tuple[str, ...]:
    aliases = tuple(dict.fromkeys(split_list(text)))
    if not aliases:
        raise ValueError("expected at least one alias")
    for alias in aliases:
        if not _TOPIC_CHARACTERS.fullmatch(alias):
            raise ValueError(f"alias '{alias}' may have only letters, digits, '.', '_' and '-'")
        if alias in RESERVED_ALIASES:
            raise ValueError(f"alias '{alias}' is the beginning of other keys; choose another name")
    return aliases


def _names(text: str) -> tuple[str, ...]:
    found = split_list(text)
    for name in found:
        if not name or found.count(name) > 1:
            raise ValueError(f"'{name}' is empty or listed twice")
        if "." in name:
            raise ValueError(f"'{name}' has a dot; choose a name without one")
    return found


def _servers(text: str) -> tuple[str, ...]:
    servers = split_list(text)
    for server in servers:
        if not _HOST_PORT.fullmatch(server):
            raise ValueError(f"'{server}' is not host:port")
    if not servers:
        raise ValueError("expected host:port, host:port")
    return servers


def _exporters(text: str) -> tuple[Exporter, ...]:
    known = [exporter.value for exporter in Exporter]
    for name in split_list(text):
        if name not in known:
            raise ValueError(f"'{name}' is none of {', '.join(known)}")
    return tuple(dict.fromkeys(Exporter(name) for name in split_list(text)))


def _name_formats(text: str) -> tuple[NameFormat, ...]:
    known = [one.value for one in NameFormat]
    names = split_list(text)
    if not names or not set(names) <= set(known):
        raise ValueError(f"expected {', '.join(known)}, or both: {','.join(known)}")
    return tuple(dict.fromkeys(map(NameFormat, names)))


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not _HOST_PORT.fullmatch(text) or "/" in host or int(port) > _LAST_PORT:
        raise ValueError("expected host:port")
    return Address(host.strip("[]"), int(port))


def _http_listeners(text: str) -> tuple[HttpAddress | str, ...]:
    """Return the addresses, and other items as they are: MirrorMaker 2 starts with them."""
    return tuple(_http_listener(item) or item for item in split_list(text))


def _http_listener(text: str) -> HttpAddress | None:
    scheme, _, place = text.partition("://")
    if scheme.lower() not in {"http", "https"}:
        return None
    try:
        host, port = _address(f"{EVERY_ADDRESS}{place}" if place.startswith(":") else place)
    except ValueError:
        return None
    return HttpAddress(scheme.lower() == "https", host, port)


def _separator(text: str) -> str:
    if text and not _TOPIC_CHARACTERS.fullmatch(text):
        raise ValueError("expected characters that topic names may have: letters, digits, . _ -")
    return text


def _policy(text: str) -> str:
    name = WELL_KNOWN.get(text, text.removeprefix(MM2_PACKAGE))
    if name not in set(PolicyClass):
        find_class(name)
    return name


def _renames(text: str) -> tuple[Rename, ...]:
    return tuple(_rename(item) for item in split_patterns(text))


def _rename(text: str) -> Rename:
    name, colon, remote = text.rpartition(":")
    if not colon or not name or not _TOPIC_CHARACTERS.fullmatch(remote.replace("$", "-")):
        raise ValueError(f"'{text}' is not topic:name; the topic may be a regular expression")
    pattern = as_java_reads(name)
    for group in re.findall(r"\$(.?)", remote):
        if not group.isdecimal() or int(group) > pattern.groups:
            raise ValueError(f"'{text}': ${group} is no group of the expression")
    return Rename(pattern, remote)


_START_POSITIONS = (
    "expected earliest, latest, timestamp:ISO-8601 with a zone (timestamp:2025-01-31T12:00:00Z), "
    "offset:N, last:N or group:ID, or a list of pattern=position"
)


def _start_positions(text: str) -> str:
    rules = [_start_rule(item) for item in split_patterns(text)]
    if not rules:
        raise ValueError(_START_POSITIONS)
    at = next((at for at, rule in enumerate(rules) if rule.pattern is None), None)
    if at is not None and at < len(rules) - 1:
        raise ValueError(f"'{rules[at].position}' matches every topic: put it last")
    return encode_rules(rules)


def _start_rule(text: str) -> StartRule:
    rule = rule_of(text)
    if rule is None:
        raise ValueError(f"'{text}': {_START_POSITIONS}")
    if rule.pattern is not None:
        as_java_reads(rule.pattern)
    kind, _, value = rule.position.partition(":")
    if kind in {"offset", "last"} and not (value.isascii() and value.isdecimal()):
        raise ValueError(f"'{text}': expected a number of offsets, such as {kind}:1000")
    if kind == "timestamp":
        return rule._replace(position=f"timestamp:{_moment(value).isoformat()}")
    return rule


def _moment(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise ValueError(
            f"'timestamp:{text}': expected ISO 8601 with a zone, such as "
            f"timestamp:2025-01-31T12:00:00Z"
        )
    return at.astimezone(UTC)


def one_of(choices: type[Enum]) -> Kind:
    """Return the kind of an enumeration."""
    return Kind(" | ".join(str(choice.value) for choice in choices))


def lower_case(text: str) -> str:
    """Return the text in lower case, as values of enumerations are written."""
    return text.lower()


def _topic_name(text: str) -> str:
    if text and (not _TOPIC_CHARACTERS.fullmatch(text) or len(text) > MAX_TOPIC_CHARS):
        raise ValueError(
            f"expected the name of a topic: letters, digits, . _ -, at most {MAX_TOPIC_CHARS}"
        )
    if text.startswith(INTERNAL_PREFIX) and not text.endswith(".quarantine"):
        raise ValueError(f"names that begin with {INTERNAL_PREFIX} belong to the mirror itself")
    return text


Boolean = Annotated[bool, BeforeValidator(_boolean), Kind("boolean")]
Count = Annotated[int, BeforeValidator(_positive), Kind("int")]
Bytes = Annotated[int, BeforeValidator(_positive), Kind("int", "bytes")]
CountOrBrokerDefault = Annotated[int | None, BeforeValidator(_broker_default), Kind("int")]
Milliseconds = Annotated[timedelta, BeforeValidator(_milliseconds), Kind("int", "ms")]
Seconds = Annotated[timedelta, BeforeValidator(_seconds), Kind("int", "s")]
Patterns = Annotated[tuple[re.Pattern[str], ...], BeforeValidator(_patterns), Kind("list of regex")]
Aliases = Annotated[tuple[str, ...], BeforeValidator(_aliases), Kind("list")]
Names = Annotated[tuple[str, ...], BeforeValidator(_names), Kind("list")]
Servers = Annotated[tuple[str, ...], BeforeValidator(_servers), Kind("list of host:port")]
Exporters = Annotated[tuple[Exporter, ...], BeforeValidator(_exporters), Kind("list")]
NameFormats = Annotated[tuple[NameFormat, ...], BeforeValidator(_name_formats), Kind("list")]
Listener = Annotated[Address, BeforeValidator(_address), Kind("host:port")]
HttpListeners = Annotated[
    tuple[HttpAddress | str, ...], BeforeValidator(_http_listeners), Kind("list of url")
]
Text = Annotated[str, Kind("string")]
Separator = Annotated[str, BeforeValidator(_separator), Kind("string")]
TopicName = Annotated[str, BeforeValidator(_topic_name), Kind("string")]
StartPosition = Annotated[str, BeforeValidator(_start_positions), Kind("list")]
Renames = Annotated[tuple[Rename, ...], BeforeValidator(_renames), Kind("list of regex:name")]
Policy = Annotated[str, BeforeValidator(_policy), Kind("class")]
RuntimeChoice = Annotated[Runtime, BeforeValidator(lower_case), one_of(Runtime)]
BoundaryChoice = Annotated[BoundaryMode, BeforeValidator(lower_case), one_of(BoundaryMode)]
AclChoice = Annotated[AclMode, BeforeValidator(lower_case), one_of(AclMode)]
DeletedChoice = Annotated[WhenDeleted, BeforeValidator(lower_case), one_of(WhenDeleted)]
DefaultsChoice = Annotated[DefaultsFrom, BeforeValidator(lower_case), one_of(DefaultsFrom)]
