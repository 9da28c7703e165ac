"""What a task must know of its copies before it writes: where they end, and what they accept."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.core.topic_limits import TopicLimits, limits_of
from eos_mirror.ports import PartitionEnd
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    Refused,
)
from eos_mirror.wire.log_ends import Place, offsets_at
from eos_mirror.wire.messages import DESCRIBE_CONFIGS
from eos_mirror.wire.translate import translated

WITHIN_S: Final = 10.0
"""Then a new process with new clients is the better attempt."""

AT_ONCE: Final = 500
TOPIC: Final = 2
UNKNOWN: Final = frozenset(
    {UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED}
)
"""Without an answer no limit is known; the broker still refuses what it does not accept."""


class TargetFacts:
    """
    Implements `kafka.target.Facts`. Used by one thread.

    Brokers that are gone cost no time: the client library waits for them until a timeout.
    """

    def __init__(self, open_cluster: Callable[[], Cluster]) -> None:
        """
        Args:
            open_cluster: Called once, when something is asked.
        """
        self._open_cluster = open_cluster
        self._opened: Cluster | None = None

    @property
    def _cluster(self) -> Cluster:
        if self._opened is None:
            self._opened = self._open_cluster()
        return self._opened

    def ends(self, remotes: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionEnd]:
        """See `ports.Target`."""
        until = time.monotonic() + WITHIN_S
        with translated("read the ends of the copies", side=Side.TARGET):
            stable = offsets_at(self._cluster, remotes, Place.STABLE_END, until=until)
            written = offsets_at(self._cluster, remotes, Place.END, until=until)
        return {r: PartitionEnd(stable=stable[r], written=written[r]) for r in remotes}

    def limits(self, topics: Collection[str]) -> Mapping[str, TopicLimits]:
        """See `ports.Target`."""
        until, names = time.monotonic() + WITHIN_S, sorted(topics)
        found: dict[str, TopicLimits] = {}
        with translated("describe topic configurations", side=Side.TARGET):
            for start in range(0, len(names), AT_ONCE):
                found |= self._described(names[start : start + AT_ONCE], until)
        return found

    def _described(self, names: Sequence[str], until: float) -> dict[str, TopicLimits]:
        resources = [
            {"resource_type": TOPIC, "resource_name": name, "configuration_keys": None}
            for name in names
        ]
        fields = {
            "resources": resources,
            "include_synonyms": False,
            "include_documentation": False,
        }
        answer = self._cluster.ask(DESCRIBE_CONFIGS, fields, until=until)
        return {
            one["resource_name"]: limits_of(_values(one["configs"]))
            for one in answer["results"]
            if _is_known(one)
        }


def _is_known(one: Mapping[str, Any]) -> bool:
    code = one["error_code"]
    if code and code not in UNKNOWN:
        raise Refused(code, f"describe {one['resource_name']}", one["error_message"])
    return not code


def _values(configs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in configs if one["value"]}
