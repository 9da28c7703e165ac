"""A task's channel to the driver, with messages as values."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Generic, TypeVar

from eos_mirror.ports import TaskChannel
from eos_mirror.tasks.messages import decode, encode

OrdersT = TypeVar("OrdersT")
ReportT = TypeVar("ReportT")


class TypedContext(Generic[OrdersT, ReportT]):
    """Reads orders of one class and sends reports of another. One thread uses it."""

    def __init__(self, channel: TaskChannel, orders: type[OrdersT]) -> None:
        self.stop = channel.stop
        self._channel = channel
        self._kind = orders
        self._raw: Mapping[str, Any] = {}
        self._orders = orders()

    @property
    def slot(self) -> int:
        """Index of the task, from 0."""
        return self._channel.slot

    def orders(self) -> OrdersT:
        """Return the newest orders; the same object until they change."""
        raw = self._channel.orders()
        if raw is not self._raw:
            if raw:
                self._orders = decode(self._kind, raw)
            self._raw = raw
        return self._orders

    def report(self, report: ReportT) -> None:
        """Send a report to the driver; also proves that the loop is alive."""
        self._channel.report(encode(report))

    def event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send a log event to the driver."""
        self._channel.event(name, fields)

    def watch(self, what: str, budget: timedelta) -> AbstractContextManager[None]:
        """Exit the process if the block takes longer than the budget."""
        return self._channel.watch(what, budget)
