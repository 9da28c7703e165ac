"""
Who runs a flow: a text in the client id of the member that a run has in the group of the drivers.

Everybody who may describe that group can read it, also when the process does not answer.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

ROLE: Final = "driver"
_SEPARATOR: Final = "|"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """
    One run of a configuration.

    Attributes:
        started_at: UTC. It comes first in the text, because a broker orders the members of a group
            by their ids: of two runs that join a new group together, the older one leads.
        fingerprint: Of the flow's configuration.
    """

    started_at: datetime
    host: str
    pid: int
    version: str
    fingerprint: str

    def __str__(self) -> str:
        """Return host and process id, for people."""
        return f"{self.host}, process {self.pid}"

    @property
    def process(self) -> str:
        """Return the name that ledger entries and claims have for the process of the run."""
        return f"{self.host}:{self.pid}"

    def encode(self) -> str:
        """Return the text that goes into a client id."""
        at = self.started_at.astimezone(UTC).isoformat(timespec="milliseconds")
        parts = (ROLE, at, self.host, str(self.pid), self.version, self.fingerprint)
        return _SEPARATOR.join(parts)


def decode_identity(client_id: str) -> RunIdentity | None:
    """Return the run that a client id names; None if another program or release made it."""
    _, found, text = client_id.partition(f"{_SEPARATOR}{ROLE}{_SEPARATOR}")
    parts = text.split(_SEPARATOR)
    if not found or len(parts) != len(RunIdentity.__dataclass_fields__):
        return None
    at, host, pid, version, fingerprint = parts
    try:
        started_at, number = datetime.fromisoformat(at), int(pid)
    except ValueError:
        return None
    return RunIdentity(
        started_at=started_at, host=host, pid=number, version=version, fingerprint=fingerprint
    )
