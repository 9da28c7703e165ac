"""The configured metrics exporters. Import it on demand: OpenTelemetry's SDK loads slowly."""

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from opentelemetry.sdk.metrics import MeterProvider, ObservableCounter, ObservableGauge
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from eos_mirror.errors import AddressInUse, ConfigError
from eos_mirror.settings.metrics import MetricSettings
from eos_mirror.settings.values import Address, Exporter

SERIES: Final[dict[Any, int]] = {ObservableCounter: 1_000_000, ObservableGauge: 1_000_000}
"""Series per metric. Above the SDK's limit of 2,000 they go into one sum; partitions are many."""

INSTALL: Final = "pip install 'eos-mirror[metrics]'"

PACKAGES: Final = {
    Exporter.OTLP: ("opentelemetry.exporter.otlp.proto.http.metric_exporter",),
    Exporter.PROMETHEUS: ("opentelemetry.exporter.prometheus", "prometheus_client"),
}
"""Modules of the extra `metrics`."""


@contextmanager
def exported(
    settings: MetricSettings,
    on_listening: Callable[[str], None],
    *,
    on_page: Callable[[Callable[[], bytes]], None] = lambda _: None,
) -> Iterator[MeterProvider]:
    """
    Yield a provider for the configured exporters, and close everything at the end.

    Args:
        on_listening: Receives the address of the page for Prometheus.
        on_page: Receives what returns that page.

    Raises:
        ConfigError: A package is missing, or the address cannot be bound.
        AddressInUse: Another process listens there.
    """
    with ExitStack() as cleanup:
        readers: list[MetricReader] = []
        for exporter in settings.exporters:
            if exporter is Exporter.OTLP:
                readers.append(_otlp())
            else:
                registry, reader = _prometheus(settings.listener, cleanup, on_listening)
                readers.append(reader)
                on_page(partial(import_module("prometheus_client").generate_latest, registry))
        resource = Resource.create({"service.name": "eos-mirror"})
        provider = MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)
        cleanup.callback(provider.shutdown)
        yield provider


def check_packages(exporters: Sequence[Exporter]) -> None:
    """
    Check that the packages of these exporters are installed.

    Raises:
        ConfigError: One is missing.
    """
    for exporter in exporters:
        for name in PACKAGES[exporter]:
            _package(name, exporter)


def _otlp() -> MetricReader:
    module = _package(PACKAGES[Exporter.OTLP][0], Exporter.OTLP)
    return PeriodicExportingMetricReader(module.OTLPMetricExporter(), cardinality_limits=SERIES)


def _prometheus(
    address: Address, cleanup: ExitStack, on_listening: Callable[[str], None]
) -> tuple[Any, MetricReader]:
    kind = Exporter.PROMETHEUS
    exporter, client = (_package(name, kind) for name in PACKAGES[kind])
    registry = client.CollectorRegistry()
    client.ProcessCollector(registry=registry)
    try:
        server, thread = client.start_http_server(address.port, address.host, registry)
    except OSError as exc:
        cause = AddressInUse if exc.errno == errno.EADDRINUSE else ConfigError
        raise cause(
            f"metrics.listener = {address}: cannot listen there: {exc.strerror or exc}. Choose "
            "another address, or stop what listens there."
        ) from exc
    cleanup.callback(_close, server, thread)
    on_listening(f"http://{Address(address.host, server.server_port)}/metrics")
    reader: MetricReader = exporter.PrometheusMetricReader(
        scope_info_enabled=False, registry=registry, cardinality_limits=SERIES
    )
    return registry, reader


def _close(server: Any, thread: Any) -> None:
    server.shutdown()
    server.server_close()
    thread.join()


def _package(name: str, exporter: Exporter) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as exc:
        raise ConfigError(
            f"metrics.exporters = {exporter.value}: {exc.name} is not installed: {INSTALL}"
        ) from exc
