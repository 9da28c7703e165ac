"""Metrics of a run, as Prometheus and an OpenTelemetry collector receive them."""

import http.server
import os
import signal
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from prometheus_client.parser import text_string_to_metric_families

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import set_group_offsets
from eos_mirror.ports import GroupOffset
from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

MM2 = "kafka_connect_mirror_mirrorsourceconnector_"
NEW = "kafka_connect_plugins_"
MM2_CHECKPOINTS = "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_"
RECORDS = 2_000
VALUE_BYTES = len(b"value-0000000")
SOON = timedelta(seconds=60)

Page = Mapping[str, Mapping[int, float]]
"""Value by metric and partition of one remote topic."""


def text_at(address: str) -> str:
    """Return the page that Prometheus scrapes."""
    with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 (it is http)
        text: str = answer.read().decode()
    return text


def read_page(address: str, site: Site) -> Page:
    """Return the metrics of the site's remote topic."""
    text = text_at(address)
    wanted = {"source": site.flow.source, "target": site.flow.target, "topic": site.remote}
    page: dict[str, dict[int, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if wanted.items() <= sample.labels.items():
                page.setdefault(sample.name, {})[int(sample.labels["partition"])] = sample.value
    return page


def of_flow(address: str, site: Site, name: str) -> float:
    """Return the value of a metric of the site's flow."""
    labels = {"source": site.flow.source, "target": site.flow.target}
    return next(
        sample.value
        for family in text_string_to_metric_families(text_at(address))
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    )


@pytest.mark.long
def test_prometheus_reads_mm2s_metrics_and_the_lag(site: Site) -> None:
    """Counts are exact, and a paused task is visible in the lag."""
    config = site.config(
        data_path="client",  # our own lane counts the bytes of batches
        metrics_exporters="prometheus",
        metrics_listener="127.0.0.1:0",
        emit_checkpoints_enabled="true",
        emit_checkpoints_interval_seconds=1,
        groups=f"readers of {site.topic}",
    )
    site.produce(RECORDS)
    partitions = {
        TopicPartition(site.topic, p): GroupOffset(position=Position(7, None), metadata="")
        for p in range(site.partitions)
    }
    group = f"readers of {site.topic}"
    set_group_offsets(site.source.admin(), group, partitions, side=Side.SOURCE)
    flow = f'source="{site.flow.source}",target="{site.flow.target}"'
    each = RECORDS // site.partitions
    with mirror(config) as running:
        address = running.wait_for("metrics.listening")["address"]

        def shows(name: str, value: float) -> bool:
            return read_page(address, site).get(name) == dict.fromkeys(
                range(site.partitions), value
            )

        wait_until(lambda: shows(f"{MM2}record_count", each), within=SOON, what="the counts")
        wait_until(lambda: shows("eos_mirror_lag_records", 0), within=SOON, what="no lag")
        page = read_page(address, site)
        assert shows(f"{MM2}byte_count", each * VALUE_BYTES)
        assert NEW not in text_at(address), "the default is that of Kafka 4.3"
        assert shows("eos_mirror_partition_state", 1)
        assert text_at(address).count('state="mirroring"') == site.partitions
        assert page["eos_mirror_lag_time_seconds"] == dict.fromkeys(range(site.partitions), 0)
        for name in ("record_age_ms", "replication_latency_ms"):
            for partition in range(site.partitions):
                low, mean, high, last = (
                    page[f"{MM2}{name}{suffix}"][partition]
                    for suffix in ("_min", "_avg", "_max", "")
                )
                assert 0 <= low <= mean <= high
                assert low <= last <= high
        assert all(rate > 0 for rate in page[f"{MM2}record_rate"].values())
        age, latency = page[f"{MM2}record_age_ms_avg"], page[f"{MM2}replication_latency_ms_avg"]
        assert all(latency[p] >= age[p] for p in range(site.partitions))

        wait_until(
            lambda: (
                f"eos_mirror_groups_followed{{{flow}}} 1.0\n" in text_at(address)
                and f"eos_mirror_checkpoints_total{{{flow}}} 4.0\n" in text_at(address)
            ),
            within=SOON,
            what="the group and its checkpoints",
        )
        assert f"eos_mirror_partitions_stopped{{{flow}}} 0.0\n" in text_at(address)
        low, mean, high, last = (
            of_flow(address, site, f"{MM2_CHECKPOINTS}latency_ms{suffix}")
            for suffix in ("_min", "_avg", "_max", "")
        )
        assert 0 <= low <= mean <= high
        assert low <= last <= high

        os.kill(running.pid(), signal.SIGSTOP)
        site.produce(RECORDS)
        wait_until(lambda: shows("eos_mirror_lag_records", each), within=SOON, what="a lag")
        page = read_page(address, site)
        assert all(seconds > 0 for seconds in page["eos_mirror_lag_time_seconds"].values())
        about = dict.fromkeys(range(site.partitions), each * VALUE_BYTES)
        assert page["eos_mirror_lag_bytes"] == about
        os.kill(running.pid(), signal.SIGCONT)
        assert running.stop() == 0, running.errors


@contextmanager
def collector() -> Iterator[tuple[str, set[str]]]:
    """Receive OTLP; yield the address and the names of the received metrics."""
    names: set[str] = set()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = ExportMetricsServiceRequest.FromString(body)
            for resource in request.resource_metrics:
                for scope in resource.scope_metrics:
                    names.update(metric.name for metric in scope.metrics)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Log nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", names
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_collector_is_sent_the_same_by_otlp(site: Site) -> None:
    """OpenTelemetry's own environment variables set the address of the collector."""
    site.produce(RECORDS)
    with collector() as (address, names):
        env = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": address,
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
            "OTEL_METRIC_EXPORT_INTERVAL": "500",
        }
        config = site.config(metrics_exporters="otlp", metric_names_formats="legacy,new")
        wanted = {
            "eos_mirror.records",
            "eos_mirror.commit.time",
            "eos_mirror.lag.records",
            "kafka.connect.mirror.mirrorsourceconnector.record-count",
            "kafka.connect.plugins.record-count",
        }
        with mirror(config, env=env) as running:
            wait_until(lambda: wanted <= names, within=SOON, what=f"{wanted} in {names}")
            assert running.stop() == 0, running.errors


@pytest.mark.long
def test_kafkas_new_names_replace_the_legacy_ones_if_the_flow_asks(site: Site) -> None:
    """Kafka 5.0 will have no others; our own metrics keep their only name."""
    config = site.config(
        metrics_exporters="prometheus",
        metrics_listener="127.0.0.1:0",
        emit_checkpoints_enabled="true",
        emit_checkpoints_interval_seconds=1,
        metric_names_formats="new",
    )
    site.produce(RECORDS)
    each = dict.fromkeys(range(site.partitions), RECORDS // site.partitions)
    group, first = f"readers of {site.topic}", TopicPartition(site.topic, 0)
    offset = GroupOffset(position=Position(7, None), metadata="")
    set_group_offsets(site.source.admin(), group, {first: offset}, side=Side.SOURCE)
    of_flow = f'source="{site.flow.source}",target="{site.flow.target}",task="0"'
    latency = f'{NEW}checkpoint_latency_ms{{connector="MirrorCheckpointConnector",{of_flow}}}'
    with mirror(config) as running:
        address = running.wait_for("metrics.listening")["address"]
        wait_until(
            lambda: read_page(address, site).get(f"{NEW}record_count") == each,
            within=SOON,
            what="the counts",
        )
        wait_until(lambda: latency in text_at(address), within=SOON, what=latency)
        text = text_at(address)
        tags = f'connector="MirrorSourceConnector",partition="0",source="{site.flow.source}"'
        assert f"{NEW}record_count{{{tags}," in text
        assert "kafka_connect_mirror_" not in text
        assert f"eos_mirror_lag_records{{{tags.partition(',')[2]}," in text
        assert running.stop() == 0, running.errors


def test_partitions_are_left_out_if_the_file_says_so(site: Site) -> None:
    """With `metrics.partitions = false` there is no series for a single partition."""
    config = site.config(
        metrics_exporters="prometheus",
        metrics_listener="127.0.0.1:0",
        metrics_partitions="false",
    )
    site.produce(RECORDS)
    with mirror(config) as running:
        address = running.wait_for("metrics.listening")["address"]
        site.wait_caught_up()
        text = text_at(address)
        assert "eos_mirror_records_total{" in text
        assert MM2 not in text
        assert running.stop() == 0, running.errors


def test_an_address_in_use_is_said_in_a_line(site: Site) -> None:
    """The start is refused with one line, and nothing is written."""
    with collector() as (address, _):
        taken = address.removeprefix("http://")
        config = site.config(metrics_exporters="prometheus", metrics_listener=taken)
        with mirror(config) as running:
            assert running.wait() == 2
        (line,) = running.errors
        assert f"metrics.listener = {taken}: cannot listen there" in line
    assert site.remote not in site.target.admin().list_topics(timeout=10).topics
