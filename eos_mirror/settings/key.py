"""What a field of the settings says about its key in the file."""

from dataclasses import dataclass
from enum import Enum


class Scope(Enum):
    """Where a key may stand: at the narrowest place named here, or at a wider one."""

    TOP = "top"
    CLUSTER = "cluster"
    FLOW = "flow"
    FLOW_ONLY = "flow only"


@dataclass(frozen=True, slots=True)
class Key:
    """
    A key of the file.

    Attributes:
        name: Without the prefix of its scope.
        default: As it would be written; None for a required key.
        text: One line for the reference page.
        fallback: Another key whose value is the default, if that one is set.
        shown_default: What the reference page says where the default depends on other keys.
    """

    name: str
    default: str | None
    text: str
    fallback: str | None = None
    shown_default: str | None = None
