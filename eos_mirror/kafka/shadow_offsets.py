"""
The shadow offsets of a flow: committed, undecided or missing.

Only an admin client returns which offsets are undecided, and an admin client that is answered
NOT_COORDINATOR crashes its process (`groups.CommittedOffsets` says why). So a consumer that never
joins reads first. It returns as soon as every offset is decided. Only if that takes long and the
coordinator answers is an admin client asked.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.client import new_consumer
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.groups import NO_SUCH_GROUP, TO_A_COORDINATOR_S, CommittedOffsets
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.reconnecting import ReconnectingClient
from eos_mirror.ports import UNSTABLE, ShadowOffset, Unstable

DECIDED_WITHIN_S = 0.5
"""How long the consumer may wait for a decision. Markers usually arrive within milliseconds."""

Found = dict[TopicPartition, ShadowOffset | Unstable | None]


class ShadowOffsets:
    """Reads the offsets of one shadow group. Used by one thread."""

    def __init__(
        self,
        group: str,
        config: Mapping[str, Any],
        metadata: ClusterMetadata,
        *,
        stable: bool,
        early: bool,
    ) -> None:
        """
        Args:
            group: Never joined.
            config: Connection and security.
            metadata: Its admin client is used.
            stable: False returns the offset before an undecided one; only tests of the checker set
                it.
            early: Connect now. The client asks for the coordinator of the group immediately, so a
                new cluster creates __consumer_offsets.
        """
        self._group = group
        self._metadata = metadata
        self._require_stable = stable
        reader = {"group.id": group, "enable.auto.commit": False}
        self._decided = ReconnectingClient(
            new_consumer, {**config, **reader, "isolation.level": "read_committed"}, early=early
        )
        self._coordinator = CommittedOffsets(config, group, side=Side.TARGET)

    def read(self, remotes: Sequence[TopicPartition], deadline: Deadline) -> Found:
        """
        Return the shadow offset of each partition.

        Raises:
            RestartTask: The whole call or one partition failed (TargetUnavailable: no answer).
        """
        wanted = [ClientPartition(*remote) for remote in remotes]
        found = self._read_decided(wanted) if self._require_stable and wanted else None
        if found is None:
            self._coordinator.read(
                remotes, deadline
            )  # or the next request might crash this process
            found = self._read_each(wanted, deadline)
        offsets: Found = dict.fromkeys(remotes)
        for one in found:
            offsets[TopicPartition(one.topic, one.partition)] = _shadow_offset(one)
        return offsets

    def _read_decided(self, wanted: list[ClientPartition]) -> list[ClientPartition] | None:
        """Return the offsets; None if one is undecided, or if the coordinator does not answer."""
        try:
            return self._decided.client.committed(wanted, timeout=DECIDED_WITHIN_S)
        except KafkaException as exc:
            code = exc.args[0].code()
            if code in NO_SUCH_GROUP:
                return []
            if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
                raise as_mirror_error(
                    exc.args[0], "read the shadow offsets", side=Side.TARGET
                ) from exc
            self._decided.replace()  # it would ask again and again, or has lost its brokers
            return None

    def _read_each(
        self, wanted: list[ClientPartition], deadline: Deadline
    ) -> list[ClientPartition]:
        """Return the offsets, with UNSTABLE_OFFSET_COMMIT as the error of undecided ones."""
        self._metadata.forget_coordinators()
        with translated("read the shadow offsets"):
            answer = self._metadata.admin.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(self._group, wanted)],
                require_stable=self._require_stable,
                request_timeout=TO_A_COORDINATOR_S,
            )
            try:
                return answer[self._group].result(deadline.answer_s).topic_partitions or []
            except KafkaException as exc:
                if exc.args[0].code() not in NO_SUCH_GROUP:
                    raise
                return []


def _shadow_offset(found: ClientPartition) -> ShadowOffset | Unstable | None:
    if found.error is not None:
        if found.error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT:
            return UNSTABLE
        raise as_mirror_error(found.error, "read a shadow offset", side=Side.TARGET)
    if found.offset < 0:
        return None
    epoch = cast("int | None", found.leader_epoch)
    return ShadowOffset(
        position=Position(found.offset, None if epoch is None or epoch < 0 else epoch),
        metadata=found.metadata or "",
    )
