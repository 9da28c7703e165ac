"""Resolves the typed value of each row: from the strongest line that sets the key, or a default."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from eos_mirror.settings.expand import Providers, UnknownProviderError, expand
from eos_mirror.settings.keys import Row
from eos_mirror.settings.properties import Property
from eos_mirror.settings.values import trailing_comment

DEFAULT = "default"
"""The origin of a value that no line sets."""


@dataclass(slots=True, kw_only=True)
class Report:
    """
    Faults, notes and origins found while the configuration was read.

    Attributes:
        faults: One line each. Lines about the same thing appear once.
        notes: One line each.
        origins: Full key to `file:line` or `default`.
    """

    faults: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def hear(self, faults: Iterable[str], notes: Iterable[str]) -> None:
        """Add faults and notes."""
        self.fault(*faults)
        self.note(*notes)

    def fault(self, *lines: str) -> None:
        """Add faults."""
        self.faults.update(dict.fromkeys(lines))

    def note(self, *lines: str) -> None:
        """Add notes."""
        self.notes.update(dict.fromkeys(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver:
    """Reads keys from the configuration's lines; `${...}` is resolved only where it is used."""

    lines: Mapping[str, Property]
    providers: Providers = field(repr=False)
    report: Report

    def values(self, rows: Iterable[Row], owners: Sequence[str]) -> dict[str, Any]:
        """
        Return values by field; a field with a wrong text is absent, and its fault is reported.

        Args:
            rows: The keys to read.
            owners: Prefixes, strongest first; origins are recorded under the first one.
        """
        found = {}
        for row in rows:
            value = self.value(row, owners)
            if value is not None:
                found[row.attribute] = value[0]
        return found

    def value(self, row: Row, owners: Sequence[str]) -> tuple[Any] | None:
        """Return the value in a 1-tuple (it may itself be None); None if none is valid."""
        line = self.line(row.name, owners)
        if line is None and row.key.fallback:
            line = self.line(row.key.fallback, owners)
        self.report.origins[owners[0] + row.name] = line.place if line else DEFAULT
        if line is not None:
            return self.parse(row, line)
        default = row.key.default
        return None if default is None else (row.adapter.validate_python(default),)

    def parse(self, row: Row, line: Property) -> tuple[Any] | None:
        """Return a line's value in a 1-tuple; report a fault and return None if it is wrong."""
        text = self.text(line)
        if text is None:
            return None
        comment = trailing_comment(text)
        try:
            if comment is None:
                return (row.adapter.validate_python(text),)
            what = f"a comment needs a line of its own; move '{comment}' there"
        except ValidationError as exc:
            what = _in_words(exc)
        written = line.value.strip()
        if written != text:  # never show the value of ${...}
            what = f"resolves to something that is not of type {row.kind.name}"
        self.report.fault(f"{line.place}: {line.key} = {written}: {what}")
        return None

    def line(self, name: str, owners: Sequence[str]) -> Property | None:
        """Return the strongest line that sets the key."""
        return next((self.lines[o + name] for o in owners if o + name in self.lines), None)

    def text(self, line: Property) -> str | None:
        """Return a line's text, trimmed as Kafka does; report a fault if `${...}` fails."""
        try:
            return expand(line.value, self.providers).strip()
        except UnknownProviderError as exc:
            self.report.fault(str(exc))
            return None
        except ValueError as exc:
            self.report.fault(f"{line.place}: {line.key}: {exc}")
            return None


def _in_words(error: ValidationError) -> str:
    """Return pydantic's first complaint, without its frame and without the input."""
    first = error.errors(include_url=False, include_input=False)[0]
    cause = first.get("ctx", {}).get("error")
    words = str(cause) if cause else first["msg"]
    return words[:1].lower() + words[1:]
