"""A real Prometheus that scrapes one run as it would scrape a pod of Strimzi."""

import json
import math
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from eos_mirror.testing import wait_until
from eos_mirror.testing.processes import spawn
from eos_mirror.testing.tcp_ports import PortLease
from tests.delivery.files import run_tool
from tests.delivery.strimzi import CLUSTER

PROGRAMS: Final = ("prometheus", "promtool")
needs_prometheus = pytest.mark.skipif(
    not all(map(shutil.which, PROGRAMS)),
    reason=f"{' and '.join(PROGRAMS)} are not both on the PATH",
)

POD: Final[Mapping[str, str]] = {
    "__meta_kubernetes_namespace": "mirrors",
    "__meta_kubernetes_pod_name": f"{CLUSTER}-mirrormaker2-0",
    "__meta_kubernetes_pod_container_name": f"{CLUSTER}-mirrormaker2",
    "__meta_kubernetes_pod_node_name": "node-1",
    "__meta_kubernetes_pod_host_ip": "10.0.0.1",
    "__meta_kubernetes_pod_label_strimzi_io_kind": "KafkaMirrorMaker2",
    "__meta_kubernetes_pod_label_strimzi_io_cluster": CLUSTER,
}
"""What Prometheus discovers about a pod of Strimzi's MirrorMaker 2."""

TARGET_LABELS: Final[Mapping[str, str]] = {
    "__meta_kubernetes_namespace": "namespace",
    "__meta_kubernetes_pod_name": "kubernetes_pod_name",
    "__meta_kubernetes_pod_node_name": "node_name",
    "__meta_kubernetes_pod_host_ip": "node_ip",
}
"""What Strimzi's PodMonitor makes of it; its labelmap copies `strimzi_io_*`."""

OPERATORS_LABELS: Final[Mapping[str, str]] = {
    "__meta_kubernetes_pod_name": "pod",
    "__meta_kubernetes_pod_container_name": "container",
}
"""What Prometheus's operator adds for every PodMonitor."""

STARTED_WITHIN, STOPPED_WITHIN = timedelta(seconds=60), timedelta(seconds=30)
ANSWERED_WITHIN_S = 10

Samples = dict[frozenset[tuple[str, str]], float]
"""Value by labels; without NaN."""


def _configuration(page: str) -> dict[str, Any]:
    relabelling: list[dict[str, Any]] = [
        {"action": "labelmap", "regex": "__meta_kubernetes_pod_label_(strimzi_io_.+)"}
    ]
    for labels in (TARGET_LABELS, OPERATORS_LABELS):
        relabelling += [
            {"source_labels": [found], "target_label": label} for found, label in labels.items()
        ]
    address = urllib.parse.urlsplit(page)
    job = {
        "job_name": "kafka-resources-metrics",
        "scrape_interval": "1s",
        "scrape_timeout": "1s",
        "metrics_path": address.path,
        "static_configs": [{"targets": [address.netloc], "labels": dict(POD)}],
        "relabel_configs": relabelling,
    }
    return {"scrape_configs": [job]}


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A server that is running."""

    address: str

    def query(self, expression: str) -> Samples:
        """Return what an expression is now."""
        answer = self._get("query", query=expression)
        return {
            frozenset(sample["metric"].items()): float(sample["value"][1])
            for sample in answer["result"]
            if not math.isnan(float(sample["value"][1]))
        }

    def number(self, expression: str) -> float:
        """Return the value of an expression that has one, without labels."""
        (value,) = self.query(expression).values()
        return value

    def by(self, label: str, expression: str) -> dict[str, float]:
        """Return what an expression is now, by the value of one label."""
        return {dict(labels)[label]: value for labels, value in self.query(expression).items()}

    def scrapes(self) -> bool:
        """Return True if the last scrape of the run succeeded."""
        return list(self.query("up").values()) == [1.0]

    def is_ready(self) -> bool:
        """Return True if the server answers."""
        try:
            return bool(self._get("query", query="vector(1)"))
        except OSError:
            return False

    def _get(self, verb: str, **parameters: str) -> Mapping[str, Any]:
        address = f"{self.address}/api/v1/{verb}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(address, timeout=ANSWERED_WITHIN_S) as answer:  # noqa: S310
            said = json.load(answer)
        assert said["status"] == "success", said
        data: Mapping[str, Any] = said["data"]
        return data


@contextmanager
def prometheus(folder: Path, page: str) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes this page, until the end of the block."""
    config, log = folder / "prometheus.json", folder / "prometheus.log"
    config.write_text(json.dumps(_configuration(page)))  # JSON is YAML
    run_tool("promtool", "check", "config", config)
    program, lease = shutil.which("prometheus"), PortLease()
    assert program is not None
    command = [
        program,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{lease.port}",
    ]
    with log.open("wb") as output:
        process = spawn(command, stdout=output)
    try:
        server = Prometheus(f"http://127.0.0.1:{lease.port}")
        wait_until(
            lambda: server.is_ready() and server.scrapes(),
            within=STARTED_WITHIN,
            what=f"a scrape; see {log}",
        )
        yield server
    finally:
        _stop(process)
        lease.release()


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOPPED_WITHIN.total_seconds())
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
