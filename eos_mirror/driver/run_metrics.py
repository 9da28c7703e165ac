"""The metrics of a run: which exist, and where they are exported."""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from opentelemetry.metrics import get_meter_provider

from eos_mirror.driver.flow import FlowRunner
from eos_mirror.driver.partition_states import state_rows
from eos_mirror.driver.summary import Summary
from eos_mirror.errors import AddressInUse
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.metrics import MetricSettings
from eos_mirror.telemetry.metrics import Of
from eos_mirror.telemetry.registry import Reader, register_metrics


def are_exported(settings: MetricSettings) -> bool:
    """Return True if an exporter is configured, or OpenTelemetry was set up before."""
    if settings.exporters:
        return True
    there = type(get_meter_provider()).__module__
    return not there.startswith("opentelemetry.metrics")  # the API's providers do nothing


class RunMetrics:
    """
    Exports the metrics of every flow of a run.

    Attributes:
        page: Returns the page for Prometheus; None without that exporter.
    """

    def __init__(
        self,
        settings: MetricSettings,
        flows: Sequence[FlowRunner],
        summary: Summary,
        *,
        on_event: EventSink,
    ) -> None:
        """
        Args:
            on_event: Receives log events.
        """
        self._settings = settings
        self._flows = flows
        self._summary = summary
        self._on_event = on_event
        self._has_begun = False
        self.page: Callable[[], bytes] | None = None

    def export_on_standby(self, cleanup: ExitStack) -> None:
        """As `export`; if another run of this host has the address, it is taken over later."""
        with suppress(AddressInUse):
            self.export(cleanup)

    def export(self, cleanup: ExitStack) -> None:
        """
        Register the metrics, and start their exporters. A second call does nothing.

        Raises:
            ConfigError: A package is missing, or the address cannot be bound.
        """
        if self._has_begun:
            return
        provider = get_meter_provider()
        if self._settings.exporters:
            from eos_mirror.driver import exporters  # noqa: PLC0415 - the SDK is not always needed

            exporting = exporters.exported(self._settings, self._listens, on_page=self._serves)
            provider = cleanup.enter_context(exporting)
        self._has_begun = True
        over = threading.Event()
        cleanup.callback(over.set)  # a provider that is not ours keeps the instruments
        readers: dict[Of, Reader] = {
            Of.FLOW: lambda: [] if over.is_set() else self._summary.of_flows(),
            Of.TASK: lambda: [] if over.is_set() else self._summary.read(),
        }
        if self._settings.partitions:
            readers[Of.PARTITION] = lambda: [
                row for one in self._flows if not over.is_set() for row in one.metrics.read()
            ]
            readers[Of.STATE] = lambda: [
                row for one in self._flows if not over.is_set() for row in state_rows(one)
            ]
        register_metrics(provider, readers)

    def _listens(self, address: str) -> None:
        self._on_event("metrics.listening", {"address": address})

    def _serves(self, page: Callable[[], bytes]) -> None:
        self.page = page
