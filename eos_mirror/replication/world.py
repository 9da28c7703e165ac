"""Everything outside a mirror task."""

from collections.abc import Callable
from dataclasses import dataclass

from eos_mirror.ports import (
    ClaimsLog,
    PlainProducer,
    RebalanceListener,
    Source,
    SourceMetadata,
    Target,
)


def _nobody() -> PlainProducer:
    raise RuntimeError("this world has no producer without transactions")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    The clusters, as a task reaches them.

    Attributes:
        claims: Exactly once only.
        open_plain_producer: At least once only.
    """

    open_source: Callable[[RebalanceListener], Source]
    metadata: SourceMetadata
    target: Target
    claims: ClaimsLog | None = None
    open_plain_producer: Callable[[], PlainProducer] = _nobody
