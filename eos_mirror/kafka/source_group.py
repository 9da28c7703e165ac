"""The offsets of the group that the tasks of a flow are members of, on the source."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import RetriableError, SourceUnavailable
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.groups import as_group_offset
from eos_mirror.kafka.retry import retrying
from eos_mirror.ports import GroupOffset

REBALANCING = frozenset({KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION})
"""Answers to a commit during a rebalance: a commit that is sent after a JoinGroup still has the
old generation. A client that is no longer a member gets another answer."""


class KafkaSourceGroup:
    """Implements `ports.SourceOffsets`, with the member's consumer and on its thread."""

    def __init__(self, consumer: Consumer, group: str) -> None:
        self._consumer = consumer
        self.absent = (
            f"group {group} on the source has no offset. Set one with kafka-consumer-groups.sh "
            f"--reset-offsets while no task runs."
        )

    def committed(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, GroupOffset | None]:
        """See `ports.SourceOffsets`."""
        return retrying(partial(self._committed, partitions))

    def _committed(
        self, partitions: Sequence[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, GroupOffset | None]:
        with translated("read the source group's offsets", side=Side.SOURCE):
            found = self._consumer.committed(
                [ClientPartition(*p) for p in partitions], deadline.answer_s
            )
        offsets: dict[TopicPartition, GroupOffset | None] = {}
        for one in found:
            if one.error is not None:
                raise as_mirror_error(one.error, "read a source offset", side=Side.SOURCE)
            offsets[TopicPartition(one.topic, one.partition)] = as_group_offset(one)
        return offsets

    def commit(self, offsets: Mapping[TopicPartition, GroupOffset], *, within: timedelta) -> None:
        """
        See `ports.SourceOffsets`. Waits for a rebalance in progress.

        A client that is still a member of the group still owns what it was not asked to give up.
        """
        theirs = [
            client_partition(p, one.position, metadata=one.metadata) for p, one in offsets.items()
        ]
        if not theirs:
            return
        try:
            retrying(lambda _: self._commit(theirs), within=within)
        except RetriableError as exc:
            raise SourceUnavailable(f"{exc} for {within}") from exc

    def _commit(self, offsets: list[ClientPartition]) -> None:
        what = "commit the source group's offsets"
        try:
            done = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as exc:
            error = exc.args[0]
            if error.code() in REBALANCING:
                raise RetriableError(f"{what}: a rebalance has been in progress") from exc
            raise as_mirror_error(error, what, side=Side.SOURCE) from exc
        for one in done or []:
            if one.error is not None:
                raise as_mirror_error(one.error, what, side=Side.SOURCE)


def client_partition(
    partition: TopicPartition, at: Position, *, metadata: str = ""
) -> ClientPartition:
    """Return a partition at a position as the client names it."""
    epoch = {} if at.leader_epoch is None else {"leader_epoch": at.leader_epoch}
    return ClientPartition(
        partition.topic, partition.partition, at.next_offset, metadata=metadata, **epoch
    )
