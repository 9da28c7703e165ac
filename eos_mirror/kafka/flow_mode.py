"""
The mode of a flow, noted in its claims topic by the first run.

The first record after the last tombstone counts; switching the mode (`operate/adopt.py`) writes the
tombstone. If two runs start in different modes at the same moment, both write, and the second one
finds that it is second.
"""

from collections.abc import Mapping
from typing import Any

from eos_mirror.core.claims import MODE_KEY, DeliveryMode
from eos_mirror.core.flow import Flow
from eos_mirror.errors import ForeignRecord
from eos_mirror.kafka.client import new_producer
from eos_mirror.kafka.topic_reader import read_log
from eos_mirror.kafka.topic_writer import append_records

NOT_IDEMPOTENT = {"enable.idempotence": "false", "max.in.flight.requests.per.connection": "1"}
"""An idempotent client that is not connected yet tries again after 500 ms only, at each start. A
repeated record changes nothing here, and one request at a time keeps the order."""


STOPPED = " stopped"
"""Stands after the mode of a source connector whose tasks have all ended."""


class FlowMode:
    """Reads and writes the note of one flow."""

    def __init__(
        self, flow: Flow, *, producer_config: Mapping[str, Any], client_config: Mapping[str, Any]
    ) -> None:
        """
        Args:
            producer_config: acks=all, not transactional.
            client_config: Connection and security of the target.
        """
        self._flow = flow
        self._producer_config = {**producer_config, **NOT_IDEMPOTENT}
        self._client_config = dict(client_config)

    def read(self) -> DeliveryMode | None:
        """
        Read the mode; None if it was never noted.

        Raises:
            ForeignRecord: The record was not written by us.
            TargetUnavailable: The target did not answer.
        """
        found = self._read()
        if found is None:
            return None
        try:
            return DeliveryMode(found.decode().removesuffix(STOPPED))
        except ValueError as exc:
            raise ForeignRecord(
                f"{self._flow.claims_topic}: the mode is {found[:40]!r}, which this version of "
                f"eos_mirror does not know"
            ) from exc

    def _read(self) -> bytes | None:
        found: bytes | None = None
        for key, value in read_log(
            self._client_config, self._flow.claims_topic, group=self._flow.shadow_group
        ):
            if key == MODE_KEY:
                found = None if value is None else found or value
        return found

    def was_stopped(self) -> bool:
        """
        Return True if `note_stop` was the last thing noted.

        Raises:
            TargetUnavailable: The target did not answer.
        """
        return (self._read() or b"").endswith(STOPPED.encode())

    def note(self, mode: DeliveryMode) -> DeliveryMode:
        """
        Note a mode where none was noted.

        Returns:
            The mode that counts: another one if another run was faster.
        """
        if self._write([mode.value]) == 0:
            return mode  # nothing can stand before it
        counts = self.read() or mode
        if counts is not mode:
            self._write([counts.value])  # compaction keeps the newest record, which was ours
        return counts

    def replace(self, mode: DeliveryMode) -> None:
        """Replace what was noted. No task of the flow may run."""
        self._write([None, mode.value])

    def note_stop(self) -> None:
        """Note that every task of a source connector has ended: none of them writes any more."""
        self._write([None, f"{DeliveryMode.SOURCE.value}{STOPPED}"])

    def _write(self, values: list[str | None]) -> int:
        """Append these values; returns the offset of the last one."""
        producer = new_producer(self._producer_config)
        records = [(MODE_KEY, value) for value in values]
        return append_records(producer, self._flow.claims_topic, records)[-1]
