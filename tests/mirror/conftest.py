"""Every test has its own flow, on the clusters that all tests share."""

import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from eos_mirror.core.flow import Flow
from eos_mirror.testing.checker import Comparison, compare_topics, read_topic
from eos_mirror.testing.external import Cluster
from tests.mirror.toolbox import FlowView, produce, write_config


@dataclass(frozen=True, kw_only=True)
class Site:
    """Two clusters, a flow between them, and one topic that it mirrors."""

    folder: Path
    flow: Flow
    topic: str
    source: Cluster
    target: Cluster
    partitions: int = 4

    @property
    def remote(self) -> str:
        """The name of the remote topic."""
        return f"{self.flow.source}.{self.topic}"

    @property
    def view(self) -> FlowView:
        """The flow's offsets on both clusters, read from outside."""
        return FlowView(self.flow, self.source, self.target)

    def config(self, **extra: object) -> Path:
        """Write the configuration file."""
        return write_config(
            self.folder,
            flow=self.flow,
            source=self.source,
            target=self.target,
            topics=f"{self.topic}.*",
            **extra,
        )

    def produce(self, count: int, *, start: int = 0) -> None:
        """Produce numbered records into the source topic."""
        produce(self.source, self.topic, count, partitions=self.partitions, start=start)

    def wait_caught_up(self) -> None:
        """Wait until the shadow offsets are at the ends of the source topic."""
        self.view.wait_caught_up(self.topic, self.remote, partitions=self.partitions)

    def values(self) -> list[list[bytes | None]]:
        """Return what a read_committed reader of the copy sees, by partition."""
        config = self.target.client_config()
        arrived = read_topic(config, self.remote, partitions=self.partitions)
        return [[record.value for record in partition] for partition in arrived]

    def compare(self, topic: str = "", remote: str = "") -> Comparison:
        """Compare two topics record by record; by default the site's topic and its copy."""
        return compare_topics(
            self.source.client_config(),
            topic or self.topic,
            self.target.client_config(),
            remote or self.remote,
            self.partitions,
        )


def make_site(folder: Path, source: Cluster, target: Cluster, *, partitions: int = 4) -> Site:
    """Create a source topic; its name and the aliases of the flow are unique."""
    name = uuid.uuid4().hex[:8]
    site = Site(
        folder=folder,
        flow=Flow(f"s{name}", f"t{name}"),
        topic=f"orders-{name}",
        source=source,
        target=target,
        partitions=partitions,
    )
    source.create_topic(site.topic, partitions)
    return site


@pytest.fixture
def site(tmp_path: Path, source_cluster: Cluster, target_cluster: Cluster) -> Site:
    """A flow and an empty topic of four partitions."""
    return make_site(tmp_path, source_cluster, target_cluster)
