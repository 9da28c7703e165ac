"""
Runs a broker in a container, for machines without Java.

It uses Apache Kafka's image, because testcontainers' own Kafka module runs another vendor's. The
port on the host is picked before the start, because a broker must know its advertised address.
"""

import base64
import os
import socket
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaException

from eos_mirror.testing.clients import READY
from eos_mirror.testing.errors import ClusterFailed
from eos_mirror.testing.external import ExternalCluster
from eos_mirror.testing.releases import chosen_release
from eos_mirror.testing.spec import ClusterSpec, property_text, shared_settings
from eos_mirror.testing.tcp_ports import PortLease
from eos_mirror.testing.waiting import wait_until

IMAGE = "apache/kafka"
CLIENT_PORT, INTERNAL_PORT, CONTROLLER_PORT = 9092, 19092, 9093
PING_S = 3
UNIX = "unix://"
DEFAULT_HOST = f"{UNIX}/var/run/docker.sock"


def docker_problem(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return why Docker cannot be used here; None if it can."""
    host = environ.get("DOCKER_HOST") or DEFAULT_HOST
    if host.startswith(UNIX) and not _listens(host.removeprefix(UNIX)):
        return f"no Docker engine at {host}: start one, or set DOCKER_HOST"
    try:
        import docker  # noqa: PLC0415 - most machines never need it
        import testcontainers.core.container  # noqa: F401, PLC0415 - the same
    except ImportError:
        return "testcontainers is not installed: `pip install eos-mirror[test]`"
    try:
        with closing(docker.from_env(timeout=PING_S, environment=dict(environ))) as client:
            client.ping()
    except Exception as exc:  # noqa: BLE001 - whatever it is, Docker does not answer
        return f"Docker does not answer at {host} ({type(exc).__name__})"
    return None


def _listens(path: str) -> bool:
    """Probe the socket, because Docker's client leaks the socket of a failed connection."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PING_S)
        return probe.connect_ex(path) == 0


class DockerCluster:
    """One PLAINTEXT broker in a container, on a host port that survives `kill` and `start_node`."""

    def __init__(
        self, *, name: str = "kafka", new_container: Callable[[str], Any] | None = None
    ) -> None:
        """
        Args:
            new_container: Creates a container of an image; testcontainers' by default.
        """
        self._name = name
        self._new_container = new_container or _testcontainer
        self._container: Any = None
        self._port: PortLease | None = None
        self._clients: ExternalCluster | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def clients(self) -> ExternalCluster:
        """Return the cluster as tests use it."""
        if self._clients is None:
            raise ClusterFailed(f"container {self._name} is not running")
        return self._clients

    def start(self) -> None:
        """Start the container and wait until the broker serves. Raises ClusterFailed."""
        self._port = PortLease()
        self._container = self._new_container(f"{IMAGE}:{chosen_release().version}")
        host = self._container.get_container_host_ip()
        self._container.with_bind_ports(CLIENT_PORT, self._port.port)
        for key, value in container_environment(host, self._port.port).items():
            self._container.with_env(key, value)
        self._clients = ExternalCluster(f"{host}:{self._port.port}")
        try:
            self._container.start()
            self._wait_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Remove the container and its data. Harmless when nothing runs."""
        if self._container is not None:
            self._container.stop()
        if self._port is not None:
            self._port.release()
        self._container = self._port = self._clients = None

    def kill(self) -> None:
        """Send SIGKILL to the broker."""
        self._container.get_wrapped_container().kill()

    def start_node(self) -> None:
        """Start the broker that was killed, and wait until it serves."""
        self._container.get_wrapped_container().start()
        self._wait_ready()

    def _wait_ready(self) -> None:
        def answers() -> bool:
            try:
                self.clients.check()
            except (ClusterFailed, KafkaException):
                return False
            return True

        try:
            wait_until(answers, within=READY, what=f"the broker in container {self._name} ready")
        except TimeoutError as exc:
            output = b"".join(self._container.get_logs()).decode(errors="replace")
            raise ClusterFailed(f"{exc}\n{output[-4000:]}") from exc


def container_environment(host: str, port: int) -> Mapping[str, str]:
    """
    Return the whole configuration: the image drops its defaults as soon as one variable is set.

    Args:
        host: Address of the Docker host.
        port: The port on that host.
    """
    settings: dict[str, object] = {
        "node.id": 1,
        "process.roles": "broker,controller",
        "listeners": f"CLIENT://:{CLIENT_PORT},INTERNAL://:{INTERNAL_PORT},"
        f"CONTROLLER://:{CONTROLLER_PORT}",
        "advertised.listeners": f"CLIENT://{host}:{port},INTERNAL://localhost:{INTERNAL_PORT}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@localhost:{CONTROLLER_PORT}",
        **shared_settings(ClusterSpec()),
    }
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return {
        "CLUSTER_ID": cluster_id.replace("-", "_"),
        **{_variable(key): property_text(value) for key, value in settings.items()},
    }


def _variable(key: str) -> str:
    return "KAFKA_" + key.replace("_", "__").replace(".", "_").upper()


def _testcontainer(image: str) -> Any:
    from testcontainers.core.container import (  # noqa: PLC0415 - contacts Docker when used
        DockerContainer,
    )

    return DockerContainer(image)
