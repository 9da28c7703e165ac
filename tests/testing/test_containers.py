"""The Docker backend, against a container that only records calls."""

from datetime import timedelta
from typing import Any

import pytest

from eos_mirror.testing import ClusterFailed, ExternalCluster, containers
from eos_mirror.testing.containers import DockerCluster, container_environment


class FakeContainer:
    """Records calls; its host is never asked anything."""

    def __init__(self, image: str) -> None:
        self.image = image
        self.calls: list[str] = []
        self.environment: dict[str, str] = {}
        self.ports: dict[int, int] = {}

    def get_container_host_ip(self) -> str:
        """Return the host on which Docker publishes ports."""
        return "docker.example"

    def with_bind_ports(self, inside: int, outside: int) -> None:
        """Publish a port."""
        self.ports[inside] = outside

    def with_env(self, key: str, value: str) -> None:
        """Set a variable."""
        self.environment[key] = value

    def get_wrapped_container(self) -> "FakeContainer":
        """Return the Docker client's own object."""
        return self

    def get_logs(self) -> tuple[bytes, bytes]:
        """Return what the broker wrote."""
        return b"the broker says why", b""

    def __getattr__(self, call: str) -> Any:
        if call.startswith("_"):
            raise AttributeError(call)
        return lambda: self.calls.append(call)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[FakeContainer]:
    """Every container that was made; all of them answer immediately."""
    monkeypatch.setattr(ExternalCluster, "check", lambda _: None)
    return []


def start(made: list[FakeContainer]) -> DockerCluster:
    """Start a cluster in a fake container."""

    def new_container(image: str) -> FakeContainer:
        made.append(FakeContainer(image))
        return made[-1]

    cluster = DockerCluster(new_container=new_container)
    cluster.start()
    return cluster


def test_the_broker_advertises_the_published_port(made: list[FakeContainer]) -> None:
    """Clients outside reach it under the name of the Docker host, at the port picked before."""
    cluster = start(made)

    (container,) = made
    assert container.image == "apache/kafka:4.3.1"
    assert cluster.clients.bootstrap == f"docker.example:{container.ports[9092]}"
    advertised = container.environment["KAFKA_ADVERTISED_LISTENERS"]
    assert advertised.startswith(f"CLIENT://{cluster.clients.bootstrap},")
    assert container.calls == ["start"]
    cluster.stop()


def test_a_killed_container_is_started_again_not_replaced(made: list[FakeContainer]) -> None:
    """A restarted container keeps its address and its data."""
    cluster = start(made)
    before = cluster.clients.bootstrap

    cluster.kill()
    cluster.start_node()

    assert made[0].calls == ["start", "kill", "start"]
    assert cluster.clients.bootstrap == before
    cluster.stop()
    cluster.stop()
    assert made[0].calls.count("stop") == 1
    with pytest.raises(ClusterFailed, match="not running"):
        _ = cluster.clients


def test_a_broker_that_never_answers_is_removed_and_its_log_shown(
    made: list[FakeContainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No container remains, and the error contains what it wrote."""

    def refuse(_: ExternalCluster) -> None:
        raise ClusterFailed("no answer")

    monkeypatch.setattr(ExternalCluster, "check", refuse)
    monkeypatch.setattr(containers, "READY", timedelta(0))

    with pytest.raises(ClusterFailed, match="the broker says why"):
        start(made)

    assert made[0].calls == ["start", "stop"]


def test_the_environment_is_complete_and_in_the_images_spelling() -> None:
    """Transactions work on one node, and the cluster id does not look like an option."""
    environment = container_environment("h", 1)

    assert environment["KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR"] == "1"
    assert environment["KAFKA_TRANSACTION_STATE_LOG_MIN_ISR"] == "1"
    assert environment["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"
    assert len(environment["CLUSTER_ID"]) == 22
    assert not environment["CLUSTER_ID"].startswith("-")
