"""Takes over a flow that ran as a source connector, while it is about to run as a sink."""

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from eos_mirror.driver.mm2_workers import source_connector
from eos_mirror.operate.adopt import adopt
from eos_mirror.operate.takeover import Takeover
from eos_mirror.runtime.control import EventSink
from eos_mirror.runtime.leases import DEFAULT_TTL
from eos_mirror.settings.model import FlowSettings

MATCH_LAST: Final = 1000

QUIET: Final = DEFAULT_TTL + timedelta(seconds=5)
"""If the last run did not stop its tasks: they stop by themselves when their leases are over."""


def take_over_source(settings: FlowSettings, *, on_event: EventSink) -> None:
    """
    Take the positions over; the caller leads the flow.

    Args:
        on_event: Receives log events.

    Raises:
        UnsafeError: A copy cannot be continued with certainty. Nothing was taken over.
        RestartTask: A cluster did not answer.
    """
    flow, began = str(settings.flow), time.monotonic()

    def tell(name: str, fields: Mapping[str, Any]) -> None:
        on_event(name, {"flow": flow, **fields})

    if settings.transforms.handler is None:
        takeover = Takeover(
            settings,
            lambda clusters: source_connector(settings, topics=clusters.target_topics),
            match_last=MATCH_LAST,
            on_event=tell,
            leads=True,
        )
        wait = {"quiet_s": QUIET.total_seconds()}
        count = len(takeover.run(quiet=QUIET, on_quiet=lambda: tell("flow.adopting", wait)))
    else:  # where a copy of several records ends cannot be compared
        count = adopt(settings, on_event=tell, leads=True).partitions or 0
    took_s = round(time.monotonic() - began, 3)
    tell("flow.adopted", {"partitions": count, "took_s": took_s})
