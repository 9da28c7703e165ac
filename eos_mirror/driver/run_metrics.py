"""The metrics of a run: which exist, and where they are exported."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress

from opentelemetry.metrics import get_meter_provider

from eos_mirror.driver.flow import FlowRunner
from eos_mirror.driver.metric_names import (
    CHECKPOINT_CONNECTOR,
    CHECKPOINT_TASK,
    SOURCE_CONNECTOR,
    Row,
    under_legacy_names,
    under_new_names,
)
from eos_mirror.driver.partition_states import state_rows
from eos_mirror.driver.summary import Summary
from eos_mirror.errors import AddressInUse
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.metrics import MetricSettings
from eos_mirror.settings.values import NameFormat
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

    def check(self) -> None:
        """
        Check what `export` needs, without listening anywhere.

        Raises:
            ConfigError: A package is missing.
        """
        if self._settings.exporters:
            from eos_mirror.driver.exporters import check_packages  # noqa: PLC0415 (loads slowly)

            check_packages(self._settings.exporters)

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
            Of.FLOW: self._of_flows,
            Of.TASK: self._summary.read,
            Of.PATH: self._summary.written,
            Of.CHECKPOINT_CONNECTOR: self._of_checkpoint_connectors,
        }
        if self._settings.partitions:
            readers[Of.PARTITION] = self._of_partitions
            readers[Of.STATE] = lambda: [row for one in self._flows for row in state_rows(one)]
            readers[Of.SOURCE_CONNECTOR] = self._of_source_connectors
        until_then = {of: _reads_until(over, read) for of, read in readers.items()}
        register_metrics(provider, until_then)

    def _of_flows(self) -> Iterator[Row]:
        for one, row in zip(self._flows, self._summary.of_flows(), strict=True):
            yield from under_legacy_names([row], one.settings.name_formats)

    def _of_checkpoint_connectors(self) -> Iterator[Row]:
        for one, row in zip(self._flows, self._summary.of_flows(), strict=True):
            if NameFormat.NEW in one.settings.name_formats:
                yield from under_new_names(
                    [row], connector=CHECKPOINT_CONNECTOR, task=CHECKPOINT_TASK
                )

    def _of_partitions(self) -> Iterator[Row]:
        for one in self._flows:
            yield from under_legacy_names(one.metrics.read(), one.settings.name_formats)

    def _of_source_connectors(self) -> Iterator[Row]:
        for one in self._flows:
            if NameFormat.NEW in one.settings.name_formats:
                yield from under_new_names(one.metrics.read_with_task(), connector=SOURCE_CONNECTOR)

    def _listens(self, address: str) -> None:
        self._on_event("metrics.listening", {"address": address})

    def _serves(self, page: Callable[[], bytes]) -> None:
        self.page = page


def _reads_until(over: threading.Event, read: Reader) -> Reader:
    """Return a reader that finds nothing after the run."""
    return lambda: () if over.is_set() else read()
