"""How many records passed through, and why others did not, in every place that says so."""

import json
import re
import subprocess
import sys
import urllib.request
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.toolbox import Mirror, mirror
from tests.rest.client import Client

pytestmark = [pytest.mark.brokers]

RECORDS = 4_000
SOON = timedelta(seconds=30)
SEEN = {
    "listeners": "http://127.0.0.1:0",
    "metrics_exporters": "prometheus",
    "metrics_listener": "127.0.0.1:0",
    "summary_interval_seconds": 1,
}
HEADER = {
    "transforms": "mark",
    "transforms_mark_type": "org.apache.kafka.connect.transforms.InsertHeader",
    "transforms_mark_header": "via",
    "transforms_mark_value_literal": "mirror",
}


def http(running: Mirror, site: Site) -> dict[str, Any]:
    """Return what the HTTP server says was written, by path."""
    client = Client(running.wait_for("rest.listening")["address"])
    _, answer = client.ask(f"/mirror/flows/{site.flow.source}-%3E{site.flow.target}")
    return dict(answer["written"])


def status(config: Path) -> dict[str, Any] | None:
    """Return what `status` prints of it; None if it says nothing."""
    command = [sys.executable, "-m", "eos_mirror.cli.main", "status", str(config), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, Any] | None = json.loads(done.stdout)["written"]
    return found


def metrics(running: Mirror) -> dict[str, int]:
    """Return the same from the page for Prometheus, by path."""
    address = running.wait_for("metrics.listening")["address"]
    page = urllib.request.urlopen(address).read().decode()  # noqa: S310 (our own page)
    found = re.findall(r'^eos_mirror_written_total\{.*path="(\w+)".*\} (\S+)$', page, re.MULTILINE)
    return {path: int(float(value)) for path, value in found}


def summed(running: Mirror) -> dict[str, int]:
    """Return the same from all summaries together."""
    sums: dict[str, int] = {}
    for one in running.found("flow.summary"):
        for path, count in {"passed": one.get("passed", 0), **one.get("decoded", {})}.items():
            sums[path] = sums.get(path, 0) + count
    return sums


@pytest.mark.parametrize("changed", [False, True], ids=["as they are", "with a header"])
def test_what_passed_is_counted_in_every_place(site: Site, changed: bool) -> None:
    """Whole batches pass; records that a transform changes are decoded and counted apart."""
    site.produce(RECORDS)
    config = site.config(data_path="auto", **SEEN, **(HEADER if changed else {}))
    with mirror(config) as running:
        site.wait_caught_up()
        wait_until(
            lambda: sum(summed(running).values()) == RECORDS, within=SOON, what="the summaries"
        )
        sums, said = summed(running), http(running, site)
        assert metrics(running) == {path: n for path, n in sums.items() if n}
        assert said == {
            "passed": sums["passed"],
            "decoded": {path: n for path, n in sums.items() if path != "passed"},
        }
        wait_until(lambda: status(config) == said, within=SOON, what="the status")
        assert running.stop() == 0, running.errors
    assert status(config) is None, "the run has ended"
    with mirror(site.config(data_path="client")) as running:
        running.wait_for("ready")
        assert status(config) is None, "an earlier run said it"
        assert running.stop() == 0, running.errors
    if changed:
        assert sums == {"passed": 0, "changed": RECORDS}
    else:
        assert sums["passed"] > RECORDS / 2, sums
        assert site.compare().exact


def test_the_client_library_has_no_paths(site: Site) -> None:
    """With `data.path = client`, no place says that records passed or were decoded."""
    site.produce(10)
    config = site.config(data_path="client", **SEEN)
    with mirror(config) as running:
        site.wait_caught_up()
        running.wait_for("flow.summary", records=10)
        assert http(running, site) == {}
        assert metrics(running) == {}
        assert summed(running) == {"passed": 0}
        assert status(config) is None
        assert running.stop() == 0, running.errors
