"""Exporters of metrics: a page for Prometheus and a sender for OTLP, closed at the end of a run."""

import socket
import sys
from collections.abc import Iterator
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from eos_mirror.driver.exporters import check_packages, exported
from eos_mirror.errors import AddressInUse, ConfigError
from eos_mirror.settings.metrics import MetricSettings
from eos_mirror.settings.values import Address, Exporter
from eos_mirror.telemetry.metrics import Of
from eos_mirror.telemetry.registry import register_metrics

ANY_PORT = Address("127.0.0.1", 0)
PARTITIONS = 2_500
"""More than the SDK exports of one metric by default."""


def settings_of(*exporters: Exporter, listener: Address = ANY_PORT) -> MetricSettings:
    """Return the settings of these exporters."""
    return MetricSettings(exporters=exporters, listener=listener, partitions=True)


def page(address: str) -> str:
    """Return what Prometheus would scrape."""
    with urlopen(address, timeout=10) as answer:  # noqa: S310 (an address of this test)
        return str(answer.read().decode())


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that another program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def test_a_page_shows_every_partition_and_the_process() -> None:
    """The SDK's default limit would add up all partitions beyond 2,000."""
    addresses: list[str] = []
    rows = [({"topic": "t", "partition": str(p)}, {"lag.records": p}) for p in range(PARTITIONS)]

    with exported(settings_of(Exporter.PROMETHEUS), addresses.append) as provider:
        register_metrics(provider, {Of.PARTITION: lambda: rows})
        text = page(addresses[0])

    lines = [line for line in text.splitlines() if line.startswith("eos_mirror_lag_records{")]
    assert len(lines) == PARTITIONS
    assert "process_cpu_seconds_total" in text


def test_a_page_is_gone_after_the_run() -> None:
    """The next run can listen on the same address."""
    addresses: list[str] = []
    with exported(settings_of(Exporter.PROMETHEUS), addresses.append):
        page(addresses[0])
    with pytest.raises(URLError):
        page(addresses[0])

    host, _, port = addresses[0].removeprefix("http://").removesuffix("/metrics").rpartition(":")
    again = settings_of(Exporter.PROMETHEUS, listener=Address(host, int(port)))
    with exported(again, addresses.append):
        assert page(addresses[0])
    assert addresses[0] == addresses[1]


def test_an_address_that_is_taken_is_an_error_of_the_configuration(taken_port: int) -> None:
    """The message names the key and what to do."""
    settings = settings_of(Exporter.PROMETHEUS, listener=Address("127.0.0.1", taken_port))

    with (
        pytest.raises(AddressInUse, match=rf"metrics\.listener = 127\.0\.0\.1:{taken_port}: "),
        exported(settings, print),
    ):
        pass


@pytest.mark.parametrize(
    ("exporter", "module"),
    [
        (Exporter.PROMETHEUS, "prometheus_client"),
        (Exporter.OTLP, "opentelemetry.exporter.otlp.proto.http.metric_exporter"),
    ],
)
def test_a_missing_package_is_an_error_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch, exporter: Exporter, module: str
) -> None:
    """The exporters are an extra of the package, and the message says how to install it."""
    monkeypatch.setitem(sys.modules, module, None)

    with (
        pytest.raises(ConfigError, match=r"pip install 'eos-mirror\[metrics\]'"),
        exported(settings_of(exporter), print),
    ):
        pass
    with pytest.raises(ConfigError, match=r"pip install 'eos-mirror\[metrics\]'"):
        check_packages([exporter])  # a check of a run says the same, and listens nowhere
