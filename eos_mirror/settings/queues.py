"""Finds the quarantines that flows must not mirror."""

from collections.abc import Sequence
from dataclasses import replace

from eos_mirror.settings.model import FlowSettings


def with_queues(flows: Sequence[FlowSettings]) -> tuple[FlowSettings, ...]:
    """Return the flows with the quarantines of the others that lie on their sources."""
    return tuple(
        replace(
            flow,
            queues=frozenset(
                other.quarantine_topic for other in flows if other.flow.target == flow.flow.source
            ),
        )
        for flow in flows
    )
