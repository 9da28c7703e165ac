"""Clusters that answer a probe, or do not, without a broker."""

from collections.abc import Mapping
from typing import Any, ClassVar

from eos_mirror.kafka.cluster_probe import Silence
from eos_mirror.kafka.deadline import Deadline


class FakeProbe:
    """
    Stands for `ClusterProbe`.

    Attributes:
        answers: What the next questions find out, by address; afterwards, and for other addresses,
            the cluster answers.
        renewed: How often a new login was asked for.
    """

    answers: ClassVar[dict[str, list[Silence | None]]] = {}
    renewed: ClassVar[int] = 0

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._address = config["bootstrap.servers"]

    def renew(self) -> None:
        """See `ClusterProbe`."""
        FakeProbe.renewed += 1

    def ask(self, _deadline: Deadline) -> Silence | None:
        """See `ClusterProbe`."""
        answers = self.answers.get(self._address)
        return answers.pop(0) if answers else None
