"""A flow A->B, and the names of everything it keeps on the clusters."""

from dataclasses import dataclass

INTERNAL_PREFIX = "eos-mirror."
"""Topics and groups that start with this are ours: never mirrored, never synced."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction of replication, printed `A->B`."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}->{self.target}"

    @property
    def name(self) -> str:
        """Prefix of the names of the flow's topics, groups and transactional ids."""
        return f"{INTERNAL_PREFIX}{self.source}.{self.target}"

    @property
    def source_group(self) -> str:
        """Consumer group on the source; its members are the tasks, its offsets are advisory."""
        return self.name

    @property
    def shadow_group(self) -> str:
        """Group without members on the target; its offsets are the truth."""
        return f"{self.name}.shadow"

    @property
    def drivers_group(self) -> str:
        """Consumer group on the target; its members are runs of one configuration; one leads."""
        return f"{self.name}.drivers"

    @property
    def claims_topic(self) -> str:
        """One partition, compacted, on the target: which incarnation writes which partition."""
        return f"{self.name}.claims.internal"

    @property
    def offset_map_topic(self) -> str:
        """Compacted, on the target: upstream to downstream offsets as runs."""
        return f"{self.name}.offset-map.internal"

    @property
    def ledger_topic(self) -> str:
        """One partition, kept indefinitely, on the target: what happened besides copying."""
        return f"{self.name}.ledger.internal"

    @property
    def quarantine_topic(self) -> str:
        """On the target: records that it refused, if the user names no other topic."""
        return f"{self.name}.quarantine"

    @property
    def desired_topic(self) -> str:
        """One partition, compacted, on the target: what operators want of which topics."""
        return f"{self.name}.desired.internal"

    def transactional_id(self, incarnation: str) -> str:
        """Return the id of one incarnation; it is never used twice."""
        return f"{self.name}.{incarnation}"

    @property
    def probe_id(self) -> str:
        """A transactional id that no incarnation has, for requests that only probe the target."""
        return self.transactional_id("probe")

    def instance_id(self, slot: int) -> str:
        """Return the static member id of a task slot in the source group."""
        return f"{self.name}.{slot}"
