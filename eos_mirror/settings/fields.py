"""The fields of a nested document: each is taken once, and the others are reported."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eos_mirror.errors import ConfigError
from eos_mirror.settings.draft import Draft, Entry

UNKNOWN = "eos_mirror does not know this field"


@dataclass(slots=True, kw_only=True)
class Fields:
    """
    A mapping of the input.

    Attributes:
        content: The fields that are not taken yet.
        path: Of this mapping, such as `spec.target`; empty at the top.
        draft: Where fields that are not taken over are reported.
    """

    content: dict[str, Any]
    path: str
    draft: Draft

    def path_of(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def take(self, name: str) -> Any:
        """Return a field; None if it is missing or empty."""
        return self.content.pop(name, None)

    def text(self, name: str) -> Entry | None:
        """
        Return a field of text, a number or a boolean; None if it is missing.

        Raises:
            ConfigError: The field has another type.
        """
        value = self.take(name)
        return None if value is None else self._entry(name, value)

    def needed(self, name: str) -> Entry:
        """
        Return the text of a field that a mirror cannot do without.

        Raises:
            ConfigError: The field is missing, or no text.
        """
        entry = self.text(name)
        if entry is None or not entry.value:
            raise ConfigError(f"{self.draft.file}: {self.path_of(name)} is missing; add it")
        return entry

    def inner(self, name: str) -> "Fields | None":
        """
        Return the mapping in a field; None if it is missing.

        Raises:
            ConfigError: The field is no mapping.
        """
        value = self.take(name)
        return None if value is None else fields_of(value, self.path_of(name), self.draft)

    def several(self, name: str) -> "list[Fields]":
        """
        Return the mappings of a list; none if it is missing.

        Raises:
            ConfigError: The field is no list of mappings.
        """
        value = self.take(name)
        path = self.path_of(name)
        if not isinstance(value, list | None):
            raise ConfigError(f"{self.draft.file}: {path} is not a list; write one")
        items = enumerate(value or ())
        return [fields_of(item, f"{path}[{at}]", self.draft) for at, item in items]

    def config(self, name: str) -> dict[str, Entry]:
        """
        Return the texts of a mapping, by key; empty if it is missing.

        Raises:
            ConfigError: The field is no mapping of texts.
        """
        inner = self.inner(name)
        return {} if inner is None else inner.entries()

    def entries(self) -> dict[str, Entry]:
        """
        Return every field as text, by key. Empty fields count as missing, as in Kubernetes.

        Raises:
            ConfigError: A field is no text, number or boolean.
        """
        return {
            key: self._entry(key, value) for key, value in self.content.items() if value is not None
        }

    def leave(self, reasons: Mapping[str, str]) -> None:
        """Report every field that was not taken, with its reason."""
        for name in list(self.content):
            if self.take(name) is not None:
                self.draft.refuse(self.path_of(name), reasons.get(name, UNKNOWN))

    def _entry(self, name: str, value: object) -> Entry:
        if isinstance(value, dict | list):
            expected = "expected text, a number, true or false"
            raise ConfigError(f"{self.draft.file}: {self.path_of(name)}: {expected}")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return self.draft.entry(text, self.path_of(name))


def fields_of(value: object, path: str, draft: Draft) -> Fields:
    """
    Return the fields of a mapping.

    Raises:
        ConfigError: The value is no mapping.
    """
    if not isinstance(value, dict):
        raise ConfigError(f"{draft.file}: {path} has no fields; write it as a mapping")
    return Fields(content={str(key): inner for key, inner in value.items()}, path=path, draft=draft)
