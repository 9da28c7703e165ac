"""A configuration that is being converted to an mm2.properties, and what was not taken over."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from eos_mirror.core.flow import Flow
from eos_mirror.settings.expand import TOKEN

STRIMZI_PROVIDERS = {
    "env": "env",
    "file": "file",
    "dir": "dir",
    "directory": "dir",
    "strimzienv": "env",
    "strimzifile": "file",
    "strimzidir": "dir",
}
"""Usual names of Kafka's config providers, and Strimzi's, to the names that a run has."""

KAFKA_PROVIDERS = {
    "EnvVarConfigProvider": "env",
    "FileConfigProvider": "file",
    "DirectoryConfigProvider": "dir",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The value of a field of the input, as text, and the path of the field."""

    value: str = field(repr=False)
    path: str


@dataclass(slots=True, kw_only=True)
class Draft:
    """
    The lines found so far.

    Attributes:
        file: The input, for messages.
        lines: By owner (empty, `A` or `A->B`) and key.
        clusters: Aliases, in the order of the input.
        flows: Every flow with the path of its definition.
        providers: Config providers of the input, by name: `env`, `file`, `dir`, or another class.
        needs: What a run needs besides the file: variable or path to what it holds.
        remarks: What the user has to decide; one sentence each.
        first_steps: Where the user finds how to continue earlier copies.
        not_taken: Path to reason of every field that was not taken over.
        faults: One line for each field that makes a conversion impossible.
    """

    file: str
    lines: dict[tuple[str, str], Entry] = field(default_factory=dict)
    clusters: dict[str, None] = field(default_factory=dict)
    flows: dict[Flow, str] = field(default_factory=dict)
    providers: dict[str, str] = field(default_factory=lambda: dict(STRIMZI_PROVIDERS))
    needs: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    first_steps: str = "To continue topics that MirrorMaker 2 has filled: docs/migrate-from-mm2.md."
    not_taken: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def add(self, owner: str, name: str, entry: Entry) -> None:
        """Add a line. A second line with the same key and another value is a fault."""
        known = self.lines.setdefault((owner, name), entry)
        if known.value != entry.value:
            key = key_of(owner, name)
            self.fault(entry.path, f"{key} has another value in {known.path}; make them equal")

    def refuse(self, path: str, reason: str) -> None:
        """Report a field that is not taken over."""
        self.not_taken.setdefault(path, reason)

    def fault(self, path: str, what: str) -> None:
        """Report a field that makes the conversion impossible, and how to correct it."""
        self.faults.append(f"{self.file}: {path}: {what}")

    def declare_provider(self, name: str, class_name: str) -> None:
        """Record the class of a config provider of the input."""
        simple = class_name.rpartition(".")[2]
        self.providers[name] = KAFKA_PROVIDERS.get(simple, simple)

    def entry(self, value: str, path: str) -> Entry:
        """Return an entry; each `${provider:path:key}` in its value is one that a run can read."""
        return Entry(value=TOKEN.sub(self._readable, value.strip()), path=path)

    def secret(self, name: str, key: str, *, namespace: str = "", kind: str = "Secret") -> str:
        """Return the reference to a variable that is to hold this key of a Secret."""
        where = f" in namespace {namespace}" if namespace else ""
        held = f"all {key}, one after another," if "*" in key else f"key {key}"
        return self._variable(f"{name}_{key}", f"{held} of {kind} {name}{where}")

    def _readable(self, token: re.Match[str]) -> str:
        provider, path, key = token.groups()
        known = self.providers.get(provider)
        if known == "env":
            self.needs.setdefault(key, "a variable of the pods of Kafka Connect")
            return f"${{env:{key}}}"
        if known in {"file", "dir"}:
            self.needs.setdefault(path, "a path in the pods of Kafka Connect")
            return f"${{{known}:{path}:{key}}}"
        namespace, slash, name = (path or "").partition("/")
        if slash and "/" not in name:  # as Strimzi's provider for Kubernetes reads it
            is_map = "configmap" in f"{provider}{known}".lower()
            kind = "ConfigMap" if is_map else "Secret"
            return self.secret(name, key, namespace=namespace, kind=kind)
        return self._variable(f"{path or ''}_{key}", f"what {token[0]} stands for")

    def _variable(self, words: str, holds: str) -> str:
        plain = re.sub(r"[^A-Z0-9]+", "_", words.upper()).strip("_")
        plain = f"SECRET_{plain}" if plain[:1].isdigit() or not plain else plain
        name, number = plain, 2
        while self.needs.setdefault(name, holds) != holds:
            name, number = f"{plain}_{number}", number + 1
        return f"${{env:{name}}}"

    def ordered(self) -> Iterator[tuple[str, str, Entry]]:
        """Yield owner, key and entry of every line, in the order of a configuration file."""
        for owner in ("", *self.clusters, *map(str, self.flows)):
            for (of, name), entry in self.lines.items():
                if of == owner:
                    yield owner, name, entry


def key_of(owner: str, name: str) -> str:
    """Return the full key."""
    return f"{owner}.{name}" if owner else name
