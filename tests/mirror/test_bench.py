"""`eos-mirror bench` on real clusters prints figures and leaves nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eos_mirror.testing.external import Cluster
from tests.mirror.configurations import rewrite
from tests.mirror.conftest import Site
from tests.mirror.refused_records import TOLERANT
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]


def bench(config: Path, site: Site, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a small benchmark."""
    return subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "eos_mirror.cli.main",
                "bench",
                str(config),
                str(site.flow),
                "--yes",
            ),
            *("--records", "600000", "--value-bytes", "1000", "--tasks", "1", *more),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def left_of_benches(cluster: Cluster) -> set[str]:
    """Return the topics and groups of benchmarks that are still on a cluster."""
    admin = cluster.admin()
    groups = {one.group_id for one in admin.list_consumer_groups().result(10).valid}
    return {name for name in {*admin.list_topics(timeout=10).topics, *groups} if "bench" in name}


@pytest.mark.parametrize("mode", ["true", "false"], ids=["exactly once", "at least once"])
def test_a_flow_is_measured_beside_itself_and_nothing_is_left(site: Site, mode: str) -> None:
    """The flow's own mirror runs during the benchmark and does not copy the scratch topic."""
    site.produce(400)
    config = site.config(transaction_producer=mode, **TOLERANT)
    rewrite(config, f"topics = {site.topic}.*", f"topics = {site.topic}.*, eos-mirror-bench.*")
    with mirror(config) as running:
        running.wait_for("ready")
        done = bench(config, site, "--rate", "2000", "--json")
        assert done.returncode == 0, done.stderr
        assert running.stop() == 0, running.errors
    assert {one["topic"] for one in running.found("topic.created")} == {site.remote}
    found = json.loads(done.stdout)
    (trial,) = found["trials"]
    assert trial["tasks"] == 1
    assert trial["rate"] > 3_000, "1.5 times the wanted rate"
    assert (found["tasks"], found["left"]) == (1, [])
    assert 0 < found["lag_ms"]["p50"] <= found["lag_ms"]["p99"]
    for cluster in (site.source, site.target):
        assert left_of_benches(cluster) == set()


def test_too_few_records_are_said_and_nothing_is_left(site: Site) -> None:
    """Too few records to measure a rate are reported with what to do."""
    done = bench(site.config(), site, "--rate", "1000", "--records", "1000")
    assert done.returncode == 2, done.stderr
    assert "raise --records" in done.stderr
    for cluster in (site.source, site.target):
        assert left_of_benches(cluster) == set()
