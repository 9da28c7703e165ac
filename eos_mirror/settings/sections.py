"""
Sorts every line of the configuration into the section that it belongs to.

`A->B.x` belongs to the flow, `A.x` to the cluster, everything else is top level. An alias is a
plain prefix, so a known top-level key wins over an alias that happens to begin it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from eos_mirror.settings import accepted
from eos_mirror.settings.java_names import DROPPED, RENAMED, role_of
from eos_mirror.settings.key import Scope
from eos_mirror.settings.keys import FALLBACKS, ROWS, known_names
from eos_mirror.settings.librdkafka import SETTINGS, Role
from eos_mirror.settings.properties import Property
from eos_mirror.settings.transforms import FAMILIES

ARROW = "->"
ALLOWED = {
    Scope.TOP: {Scope.TOP},
    Scope.CLUSTER: {Scope.TOP, Scope.CLUSTER},
    Scope.FLOW: {Scope.TOP, Scope.CLUSTER, Scope.FLOW},
    Scope.FLOW_ONLY: {Scope.FLOW},
}
MISPLACED = {
    Scope.TOP: "can only be set at top level",
    Scope.CLUSTER: "belongs to a cluster, not to a flow",
    Scope.FLOW_ONLY: "can only be set for a flow, as A->B.enabled",
}
WIDE_CLIENT_PREFIXES = ("consumer.", "producer.", "admin.")
FLOW_CLIENT_PREFIXES = (
    "consumer.",
    "admin.",
    "source.consumer.",
    "target.consumer.",
    "source.admin.",
    "target.admin.",
    "producer.override.",
)
KINDS = {Role.CONSUMER: "consumer.", Role.PRODUCER: "producer."}
FLOW_KINDS = {Role.CONSUMER: "source.consumer.", Role.PRODUCER: "producer.override."}
"""The prefixes with which a client setting has an effect."""
CLUSTER_OVERRIDES = ("source.cluster.", "target.cluster.")
AUDITS = "verify."
PROVIDERS, PROVIDER_PARAMETERS = "config.providers.", ".param."
"""Config providers (`expand.py`), and their parameters."""
SPARK_PREFIXES = ("spark.", f"{AUDITS}spark.")
OFFSET_SYNC_PRODUCERS = ("producer.", "source.producer.", "target.producer.")
COMMON_CLIENT_NAMES = frozenset(
    {
        "client.dns.lookup",
        "client.id",
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "security.protocol",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    }
)


@dataclass(slots=True, kw_only=True)
class Sections:
    """
    The configuration, sorted. Dictionaries are by full key; the last of duplicates counts.

    Attributes:
        settings: Keys of the table, and accepted ones.
        clients: Client settings.
        spark: `spark.*` and `verify.spark.*`.
        flows: Every valid `A->B` that is mentioned.
        notes: One line for each line without effect.
        faults: One line for each line that is not allowed.
    """

    settings: dict[str, Property] = field(default_factory=dict)
    clients: dict[str, Property] = field(default_factory=dict)
    spark: dict[str, Property] = field(default_factory=dict)
    flows: set[tuple[str, str]] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Line:
    """A property and its key in two parts: `owner` is `A`, `A->B` or empty."""

    prop: Property
    scope: Scope
    owner: str
    name: str

    @property
    def intro(self) -> str:
        return f"{self.prop.place}: {self.prop.key}"

    def sibling(self, name: str) -> str:
        return f"{self.owner}.{name}" if self.owner else name


def is_common_client_key(name: str) -> bool:
    """Return whether a bare name applies to every client of a cluster."""
    return name in COMMON_CLIENT_NAMES or name.startswith(("sasl.", "ssl."))


ALIKE, ALMOST = 0.6, 0.88
"""Similarity of aliases, and of keys longer than eight letters."""


def nearest(alias: str, aliases: Sequence[str]) -> str | None:
    """Return the alias that was probably meant; None if none is similar."""
    return _closest(alias, aliases, ALIKE)


def misspelled(key: str, known: Sequence[str]) -> str | None:
    """
    Return the known key that one wrong letter makes this key, or two in a long one; else None.

    A key that is only similar means something else, such as `topics.exclude` for `topics.regex`.
    """
    return _closest(key, known, min(ALMOST, (len(key) - 1) / len(key)))


def _closest(word: str, choices: Sequence[str], similarity: float) -> str | None:
    close = get_close_matches(word, choices, n=1, cutoff=similarity)
    return close[0] if close else None


def sort_lines(properties: Sequence[Property], aliases: Sequence[str]) -> Sections:
    """Sort every line into its section by its key; no value is read."""
    sections = Sections()
    for prop in {p.key: p for p in properties}.values():
        line = _split(prop, aliases)
        if line.scope is Scope.FLOW and not _is_possible(line.owner, aliases, line, sections):
            continue
        _place(line, sections, aliases)
    _note_duplicates(properties, sections)
    return sections


def _split(prop: Property, aliases: Sequence[str]) -> _Line:
    if ARROW in prop.key:
        source, rest = prop.key.split(ARROW, 1)
        target = _alias_of(rest, aliases) or rest.split(".", 1)[0]
        name = rest[len(target) + 1 :]
        return _Line(prop, Scope.FLOW, f"{source}{ARROW}{target}", name)
    alias = _alias_of(prop.key, aliases)
    if alias and not _is_known(prop.key):
        return _Line(prop, Scope.CLUSTER, alias, prop.key[len(alias) + 1 :])
    return _Line(prop, Scope.TOP, "", prop.key)


def _alias_of(key: str, aliases: Sequence[str]) -> str | None:
    return max((a for a in aliases if key.startswith(f"{a}.")), key=len, default=None)


def _is_known(name: str) -> bool:
    return name in ROWS or name in accepted.NAMES or name.startswith(FAMILIES)


def _is_possible(owner: str, aliases: Sequence[str], line: _Line, sections: Sections) -> bool:
    """Return whether a flow joins two known, different clusters; else add one fault per flow."""
    source, target = owner.split(ARROW)
    unknown = [alias for alias in (source, target) if alias not in aliases]
    if not unknown and source != target:
        sections.flows.add((source, target))
        return True
    if not unknown:
        fault = f"flow {owner} joins a cluster to itself"
    else:
        meant = nearest(unknown[0], aliases)
        fix = f"did you mean '{meant}'?" if meant else f"clusters = {', '.join(aliases)}"
        fault = f"flow {owner} names the unknown cluster '{unknown[0]}'; {fix}"
    if not any(known.endswith(fault) for known in sections.faults):
        sections.faults.append(f"{line.prop.place}: {fault}")
    return False


def _place(line: _Line, sections: Sections, aliases: Sequence[str]) -> None:
    row = ROWS.get(line.name)
    if row is not None and line.scope in ALLOWED[row.scope]:
        sections.settings[line.prop.key] = line.prop
    elif row is not None:
        sections.faults.append(f"{line.intro}: '{line.name}' {MISPLACED[row.scope]}")
    elif line.name in FALLBACKS or line.name.startswith(FAMILIES):
        sections.settings[line.prop.key] = line.prop
    elif not _place_family(line, sections):
        sections.faults.append(_unknown(line, aliases))


def _place_family(line: _Line, sections: Sections) -> bool:
    """Place a line without a row: accepted, client or Spark. Return False if it is unknown."""
    about = accepted.purpose(line.name)
    if about is not None:
        sections.settings[line.prop.key] = line.prop
        sections.notes.append(f"{line.intro}: accepted, no effect in this version ({about})")
    elif line.scope is Scope.TOP and f"{line.name}.".startswith(PROVIDERS):
        _place_provider(line, sections)
    elif _is_client_key(line):
        sections.clients[line.prop.key] = line.prop
    elif line.scope is Scope.FLOW and _is_offset_sync_producer(line.name):
        _, _, name = line.name.partition("producer.")
        sections.notes.append(
            f"{line.intro}: no effect: the data producer is set by "
            f"{line.owner}.producer.override.{name}"
        )
    elif _is_client_name(line.name):
        sections.notes.append(f"{line.intro}: no effect: {_advice(line)}")
    elif line.scope is Scope.TOP and line.name.startswith(SPARK_PREFIXES):
        sections.spark[line.name] = line.prop
    else:
        return False
    return True


def _place_provider(line: _Line, sections: Sections) -> None:
    """Place nothing: the classes are known already, and parameters have no effect."""
    if PROVIDER_PARAMETERS in line.name:
        why = "no effect: config providers have no parameters in this version"
        sections.notes.append(f"{line.intro}: {why}")


def _is_client_key(line: _Line) -> bool:
    if line.scope is not Scope.FLOW:
        return line.name.startswith(WIDE_CLIENT_PREFIXES) or is_common_client_key(line.name)
    if line.name.startswith(CLUSTER_OVERRIDES):
        return is_common_client_key(line.name.split(".", 2)[2])
    return line.name.startswith(FLOW_CLIENT_PREFIXES)


def _is_client_name(name: str) -> bool:
    """Return whether a name without a client prefix is one that MirrorMaker 2 ignores."""
    if name in accepted.RENAMED:
        return False
    return name in {*SETTINGS, *RENAMED, *DROPPED} or is_common_client_key(name)


def _advice(line: _Line) -> str:
    """Return where a client setting that stands without a client prefix would have an effect."""
    if line.name in DROPPED:
        return "librdkafka has no such setting"
    prefixes = FLOW_KINDS if line.scope is Scope.FLOW else KINDS
    places = [
        line.sibling(prefix + line.name)
        for role, prefix in prefixes.items()
        if role_of(line.name) in {None, Role.ANY, role}
    ]
    return f"write {' or '.join(places)}"


def _is_offset_sync_producer(name: str) -> bool:
    return name.startswith(OFFSET_SYNC_PRODUCERS)


def _unknown(line: _Line, aliases: Sequence[str]) -> str:
    stranger = _stranger(line)
    if stranger:
        meant = nearest(stranger, aliases)
        fix = f"did you mean '{line.name.replace(stranger, meant, 1)}'?" if meant else "add it"
        return f"{line.intro}: '{stranger}' is not in clusters; {fix}"
    name = accepted.RENAMED.get(line.name)
    name = name or misspelled(line.name, known_names())
    if name is None:
        return f"{line.intro}: unknown key; remove it, or give a client setting its prefix"
    return f"{line.intro}: unknown key; did you mean '{line.sibling(name)}'?"


def _stranger(line: _Line) -> str | None:
    """Return the alias, if a line looks like a setting of a cluster that is not in `clusters`."""
    alias, _, name = line.name.partition(".")
    is_clusters = name == "bootstrap.servers" or is_common_client_key(name)
    if line.scope is Scope.TOP and (is_clusters or name.startswith(WIDE_CLIENT_PREFIXES)):
        return alias
    return None


def _note_duplicates(properties: Sequence[Property], sections: Sections) -> None:
    last = {p.key: p for p in properties}
    sections.notes.extend(
        f"{p.place}: {p.key}: no effect: set again in line {last[p.key].line}"
        for p in properties
        if last[p.key] is not p
    )
