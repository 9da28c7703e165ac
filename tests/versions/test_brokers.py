"""Which releases the brokers are of, and which transaction protocol the lane speaks with them."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.faults import Api, Fault, Request
from eos_mirror.testing.proxy import FaultProxy
from eos_mirror.testing.releases import Release, chosen_release, source_release
from tests.mirror.configurations import detour
from tests.mirror.conftest import make_site
from tests.mirror.toolbox import mirror
from tests.versions.report import PROTOCOL

pytestmark = [pytest.mark.brokers, pytest.mark.long]

RECORDS = 1_000
SOON = timedelta(seconds=30)
KIP_890_SINCE = 5
"""Version of EndTxn."""


class Witness(FaultProxy):
    """A proxy that remembers the versions of the requests that end a transaction."""

    def __init__(self, listen_port: int, upstream_port: int) -> None:
        super().__init__(listen_port, upstream_port)
        self.ends: set[int] = set()

    def match(self, request: Request) -> Fault | None:
        """See `FaultProxy`."""
        if request.api == Api.END_TXN:
            self.ends.add(request.version)
        return super().match(request)


@pytest.fixture(scope="module")
def proxied(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A target cluster behind a proxy."""
    with KafkaCluster(name="witnessed", proxied=True) as cluster:
        yield cluster


@pytest.mark.usefixtures("own_brokers")
def test_brokers_are_of_the_chosen_releases(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster
) -> None:
    """Each cluster is of the release that its variable names."""
    wait_logged(source_cluster, source_release())
    wait_logged(target_cluster, chosen_release())


def wait_logged(cluster: KafkaCluster, release: Release) -> None:
    """Wait until the broker has logged its release, which it does after it first serves."""
    wait_until(
        lambda: f"Kafka version: {release.version} (" in cluster.log(1).read_text(),
        within=SOON,
        what=f"a broker of {release}",
    )


def test_the_lane_speaks_the_protocol_of_its_target(
    tmp_path: Path,
    source_cluster: Cluster,
    proxied: KafkaCluster,
    record_property: Callable[[str, object], None],
) -> None:
    """
    Only with the older protocol, partitions are added to a transaction by a request.

    librdkafka speaks the older one with every cluster.
    """
    site = make_site(tmp_path, source_cluster, proxied)
    site.produce(RECORDS)
    config = detour(site.config(data_path="auto"), proxied)
    with Witness(*proxied.proxy_ports[1]) as witness, mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors
        added = witness.seen(Api.ADD_PARTITIONS_TO_TXN)
    assert site.compare().matched == RECORDS

    spoken = 1 if added else 2
    record_property(PROTOCOL, f"TV{spoken}")
    assert spoken == chosen_release().protocol
    assert witness.ends, "no transaction was seen"
    assert {version >= KIP_890_SINCE for version in witness.ends} == {spoken == 2}
