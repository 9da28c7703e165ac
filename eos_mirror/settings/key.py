"""How a field of the settings declares its configuration key."""

from dataclasses import dataclass
from enum import Enum


class Scope(Enum):
    """The narrowest prefix at which a key may be set; wider ones work too."""

    TOP = "top"
    CLUSTER = "cluster"
    FLOW = "flow"
    FLOW_ONLY = "flow only"


@dataclass(frozen=True, slots=True)
class Key:
    """
    A configuration key.

    Attributes:
        name: Without the prefix of its scope.
        default: As it would be written; None for a required key.
        text: One line for the reference page.
        fallback: Another key; if that one is set, its value is the default.
        shown_default: The default on the reference page, if it depends on other keys.
    """

    name: str
    default: str | None
    text: str
    fallback: str | None = None
    shown_default: str | None = None
