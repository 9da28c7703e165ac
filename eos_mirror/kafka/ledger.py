"""Appends to and reads the ledger topic of a flow, on the target."""

import os
import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.core.ledger import Kind, LedgerEntry, decode_entry
from eos_mirror.errors import ForeignRecord
from eos_mirror.kafka.topic_reader import read_log
from eos_mirror.kafka.topic_writer import TopicWriter


class KafkaLedger:
    """Writes ledger entries. It connects only when there is an entry, which is rare."""

    def __init__(self, producer_config: Mapping[str, Any], topic: str) -> None:
        """
        Args:
            producer_config: Idempotent, acks=all, not transactional.
            topic: Exists, with one partition.
        """
        self._log = TopicWriter(producer_config, topic)
        self._by = f"{socket.gethostname()}:{os.getpid()}"

    def append(self, kind: Kind, details: Mapping[str, Any], *, at: datetime | None = None) -> None:
        """
        Append one entry. Returns when all in-sync replicas have it.

        Args:
            details: Fields of this kind, as listed in `core/ledger.py`.
            at: When it happened; None: now.

        Raises:
            RestartTask: The target did not answer (TargetUnavailable).
        """
        self.append_all(kind, [details], at=at)

    def append_all(
        self, kind: Kind, some: Sequence[Mapping[str, Any]], *, at: datetime | None = None
    ) -> None:
        """Append several entries of one kind, and wait once. See `append`."""
        at = at or datetime.now(UTC)
        entries = [LedgerEntry(kind=kind, at=at, by=self._by, details=one) for one in some]
        self._log.append([(kind.value, one.encode()) for one in entries])


def read_ledger(config: Mapping[str, Any], flow: Flow) -> list[LedgerEntry]:
    """
    Return every entry of a flow that this version knows, oldest first; none if nothing was noted.

    Raises:
        ForeignRecord: A record is not ours.
        TargetUnavailable: The ledger could not be read in time.
    """
    entries = []
    for _, value in read_log(config, flow.ledger_topic, group=flow.shadow_group):
        try:
            entry = decode_entry((value or b"").decode(errors="replace"))
        except ValueError as exc:
            raise ForeignRecord(f"{flow.ledger_topic}: {exc}") from exc
        if entry is not None:
            entries.append(entry)
    return entries
