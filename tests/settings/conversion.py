"""Converts resources and connectors, and loads what is printed as a run would."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eos_mirror.settings import Settings, load_settings
from eos_mirror.settings.connectors import convert_connectors
from eos_mirror.settings.converted import settle, text_of
from eos_mirror.settings.draft import Draft
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.strimzi import convert_resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """
    A conversion.

    Attributes:
        text: What a command prints.
        not_taken: Path to reason.
        settings: What the loader makes of the text.
    """

    text: str
    not_taken: Mapping[str, str]
    settings: Settings

    @property
    def flow(self) -> FlowSettings:
        """The only flow."""
        (flow,) = self.settings.flows
        return flow

    def lines(self, owner: str) -> dict[str, str]:
        """Return the lines of a cluster or flow, as they are printed, without its name."""
        found = re.findall(rf"^{re.escape(owner)}\.(.+?) =(?: (.*))?$", self.text, re.MULTILINE)
        return dict(found)


def from_strimzi(text: str, folder: Path) -> Printed:
    """Convert resources."""
    return _printed(convert_resources(text, file="mirror.yaml"), folder)


def from_connect(*texts: str, folder: Path) -> Printed:
    """Convert files of connectors."""
    named = [(f"{at}.json", text) for at, text in enumerate(texts)]
    return _printed(convert_connectors(named), folder)


def _printed(draft: Draft, folder: Path) -> Printed:
    settle(draft)
    text = text_of(draft, verb="config from-somewhere")
    path = folder / "mm2.properties"
    path.write_text(text, encoding="utf-8")
    variables = set(re.findall(r"\$\{env:(\w+)\}", text))
    assert variables <= set(draft.needs)
    settings = load_settings(path, environ={name: f"<{name}>" for name in variables})
    useless = [note for note in settings.notes if "no effect" in note]
    assert useless == [], "a line without effect is printed"
    return Printed(text=text, not_taken=draft.not_taken, settings=settings)
