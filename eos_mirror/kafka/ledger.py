"""The ledger topic of a flow, on the target."""

import os
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.core.ledger import Kind, LedgerEntry, decode_entry
from eos_mirror.errors import ForeignWriter
from eos_mirror.kafka.topic_reader import read_log
from eos_mirror.kafka.topic_writer import Appender


class KafkaLedger:
    """Connects when there is something to write, which is seldom."""

    def __init__(self, producer_config: Mapping[str, Any], topic: str) -> None:
        """
        Args:
            producer_config: Idempotent, acks=all, not transactional.
            topic: One partition; exists.
        """
        self._log = Appender(producer_config, topic)
        self._by = f"{socket.gethostname()}:{os.getpid()}"

    def append(self, kind: Kind, details: Mapping[str, Any]) -> None:
        """
        Note one thing, as of now. Returns when all in-sync replicas have it.

        Args:
            details: As `core/ledger.py` has them.

        Raises:
            RestartTask: By class.
        """
        entry = LedgerEntry(kind=kind, at=datetime.now(UTC), by=self._by, details=details)
        self._log.append([(kind.value, entry.encode())])


def read_ledger(config: Mapping[str, Any], flow: Flow) -> list[LedgerEntry]:
    """
    Every entry of a flow that this version knows, oldest first; none if nothing ever happened.

    Raises:
        ForeignWriter: A record is not ours.
        TargetUnavailable: Not read in time.
    """
    entries = []
    for _, value in read_log(config, flow.ledger_topic, group=flow.shadow_group):
        try:
            entry = decode_entry((value or b"").decode(errors="replace"))
        except ValueError as exc:
            raise ForeignWriter(f"{flow.ledger_topic}: {exc}") from exc
        if entry is not None:
            entries.append(entry)
    return entries
