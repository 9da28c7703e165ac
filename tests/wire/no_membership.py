"""A lane whose source is never opened."""

from eos_mirror.ports import RebalanceListener, Source, SourceOffsets


class NoMembership:
    """Implements `wire.lane.Membership`; nothing is read."""

    @property
    def offsets(self) -> SourceOffsets:
        """See `wire.lane.Membership`."""
        raise NotImplementedError

    def open_source(self, listener: RebalanceListener) -> Source:
        """See `wire.lane.Membership`."""
        raise NotImplementedError
