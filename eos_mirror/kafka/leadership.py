"""Elects a leader: the process to which a consumer group assigns its only partition."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from eos_mirror.core.side import Side
from eos_mirror.kafka.client import new_consumer
from eos_mirror.kafka.errors import DENIED, as_mirror_error
from eos_mirror.kafka.groups import GroupMember, group_members
from eos_mirror.kafka.reconnecting import LOGIN_AGAIN_S, ONE_LOGIN, Login, StallDetector

MEMBER = {
    "partition.assignment.strategy": "cooperative-sticky",  # a later member takes nothing away
    "group.protocol": "classic",
    "enable.auto.commit": "false",
    "auto.offset.reset": "latest",
    "allow.auto.create.topics": "false",
    "max.poll.interval.ms": "3600000",  # heartbeats show which members are alive
}

CLOSED_WITHIN_S = 5.0
ANSWERS_WITHIN = timedelta(seconds=1)


class Leadership:
    """
    A member of the leader group. Used by one thread at a time.

    Leadership is for availability only: a process that wrongly believes it leads is fenced like any
    other writer. So a member that only lost its session, perhaps with the whole cluster, still
    leads until the group has assigned the partition to another member.

    Attributes:
        leads: True if this process led at the last `poll`.
    """

    def __init__(
        self, config: Mapping[str, Any], *, group: str, topic: str, session: timedelta
    ) -> None:
        """
        Join the group.

        Args:
            config: Client settings for connection and security. The client id is that of no other
                member.
            topic: Exists, with one partition; nothing is read from it.
            session: A leader that is silent for this long no longer leads.
        """
        session_ms = str(round(session.total_seconds() * 1e3))
        self._config = {**config, **MEMBER, "group.id": group, "session.timeout.ms": session_ms}
        self._topic = topic
        self.leads = False
        self._joins_at_s: float | None = None
        self._join()

    def _join(self, **cautious: int) -> bool:
        """Join the group with a new client; after a refused login only if it is accepted now."""
        self._login = Login()
        config = {**self._config, **cautious, "error_cb": self._login.note}
        self._consumer = new_consumer(config)
        if cautious and self._login.is_refused_now(self._consumer):
            self._leave()
            return False
        self._silence = StallDetector(self._consumer, self._config)
        self._has_it = False
        self._consumer.subscribe(
            [self._topic], on_assign=self._won, on_revoke=self._lost, on_lost=self._lost
        )
        self._joins_at_s = None
        return True

    def poll(self, wait: timedelta) -> bool:
        """
        Poll the group; return True if this process leads.

        Raises:
            NotAuthorized: READ on the group, or on the topic, is missing.
        """
        if self._joins_at_s is not None:
            if time.monotonic() >= self._joins_at_s and not self._join(**ONE_LOGIN):
                self._joins_at_s = time.monotonic() + LOGIN_AGAIN_S
            return self.leads
        message = self._consumer.poll(wait.total_seconds())
        if self._login.is_shut_out:  # this client would repeat the login several times a second
            self._leave()
            self._joins_at_s = time.monotonic() + LOGIN_AGAIN_S
            return self.leads
        error = None if message is None else message.error()
        if error is not None and error.code() in DENIED:
            raise as_mirror_error(error, "wait for our turn to lead", side=Side.TARGET)
        if self._silence.is_stalled(time.monotonic(), self._topic):
            self._leave()  # its callbacks no longer change who leads
            self._join()
        return self.leads

    def others(self, admin: AdminClient) -> list[GroupMember] | None:
        """
        Return the other members; None if this one is not in the group yet, or there is no answer.

        Args:
            admin: Of the same cluster; one that is connected answers sooner.

        Raises:
            TargetUnavailable: The target did not answer in time.
        """
        group = self._config["group.id"]
        members = group_members(admin, group, side=Side.TARGET, within=ANSWERS_WITHIN)
        others = [one for one in members if one.client_id != self._config["client.id"]]
        return others if len(others) < len(members) else None

    def assume(self) -> None:
        """
        Lead without having been elected, until the group assigns the partition to another member.

        A broker waits three seconds before it assigns the partition of a new group, and a session
        for a member that is dead. Call it only if there is no other living member.
        """
        self.leads = True

    def publish(self, text: str) -> None:
        """
        Let others read a text beside the committed offset of the group; it may be lost.

        Args:
            text: At most 1,000 characters. Only a member that has the partition publishes it.
        """
        if self._has_it and self._joins_at_s is None:
            at = ClientPartition(self._topic, 0, 0, metadata=text)
            with suppress(KafkaException):
                self._consumer.commit(offsets=[at], asynchronous=True)

    def close(self) -> None:
        """
        Leave the group: the next member leads immediately.

        A client whose broker is gone can block indefinitely here, so the wait is short.
        """
        self._leave().join(CLOSED_WITHIN_S)
        self.leads = False

    def _leave(self) -> threading.Thread:
        closing = threading.Thread(target=self._consumer.close, daemon=True)
        closing.start()
        return closing

    def _won(self, consumer: Consumer, partitions: Sequence[ClientPartition]) -> None:
        consumer.incremental_assign(list(partitions))
        if consumer is not self._consumer:
            return
        if partitions:
            consumer.pause(list(partitions))
            self._has_it = True
        self.leads = self._has_it

    def _lost(self, consumer: Consumer, partitions: Sequence[ClientPartition]) -> None:
        consumer.incremental_unassign(list(partitions))
        if partitions and consumer is self._consumer:
            self._has_it = False  # the next assignment shows which member owns it now
