"""Settings for heartbeats between two clusters."""

from dataclasses import dataclass
from typing import Annotated

from eos_mirror.core.flow import Flow
from eos_mirror.settings.key import Key
from eos_mirror.settings.mask import Masked
from eos_mirror.settings.values import Boolean, CountOrBrokerDefault, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatSettings:
    """
    Heartbeats of one pair of clusters.

    Attributes:
        flow: The pair, enabled or not: heartbeats written to the source of a flow arrive with its
            copies, and so show the path of the records.
        client: The user's settings of clients of the target, as in `FlowClients`.
    """

    flow: Flow
    client: Masked

    enabled: Annotated[
        Boolean,
        Key(
            "emit.heartbeats.enabled",
            "true",
            "Write heartbeats to the target, even for flows that are not enabled.",
        ),
    ]
    interval: Annotated[
        Seconds, Key("emit.heartbeats.interval.seconds", "1", "How often to write a heartbeat.")
    ]
    replication_factor: Annotated[
        CountOrBrokerDefault,
        Key(
            "heartbeats.topic.replication.factor",
            "3",
            "Replicas of topic `heartbeats`; -1: broker's default.",
        ),
    ]
