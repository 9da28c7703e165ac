"""Starts nodes from a specification."""

import base64
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

from eos_mirror.testing import metadata
from eos_mirror.testing.clients import READY
from eos_mirror.testing.errors import ClusterFailed
from eos_mirror.testing.installation import Installation, bootstrap_checkpoint, logging_flag
from eos_mirror.testing.node import Node
from eos_mirror.testing.spec import ClusterSpec, NodePorts, server_properties
from eos_mirror.testing.waiting import wait_until


def prepare_nodes(
    spec: ClusterSpec, installation: Installation, *, folder: Path, ports: Mapping[int, NodePorts]
) -> dict[int, Node]:
    """Configure and format the nodes in a folder; return them by node id, not started."""
    features = {**installation.release.features, **spec.features}
    checkpoint = bootstrap_checkpoint(installation, features).read_bytes()
    logging = logging_flag(installation, level="INFO", stream="SYSTEM_OUT")
    flags = [f"-Xmx{spec.heap}", logging]
    flags += installation.fast_flags() if spec.fast_start else [f"-Xms{spec.heap}", "-XX:+UseG1GC"]
    command = installation.command("kafka.Kafka", flags=flags)
    cluster_id = _random_id()
    nodes = {}
    for node_id in spec.node_ids:
        node = Node(node_id, folder=folder / f"node-{node_id}", command=command)
        node.prepare(
            server_properties(spec, node_id, ports=ports, data=node.data),
            meta={
                "version": "1",
                "cluster.id": cluster_id,
                "node.id": str(node_id),
                "directory.id": _random_id(),
            },
            files={installation.release.checkpoint: checkpoint},
        )
        nodes[node_id] = node
    return nodes


def wait_ready(nodes: Iterable[Node], *, brokers: Mapping[int, int]) -> None:
    """
    Wait until these brokers serve and know each other.

    Args:
        nodes: Processes that must stay alive meanwhile.
        brokers: Internal port by node id.

    Raises:
        ClusterFailed: A node exited, or time is up; carries its last log lines.
    """
    nodes = list(nodes)

    def ready() -> bool:
        dead = next((node for node in nodes if not node.running), None)
        if dead is not None:
            raise ClusterFailed(dead.obituary())
        views = [view(port) for port in brokers.values()]
        return all(seen.has_controller and seen.brokers >= set(brokers) for seen in views)

    try:
        wait_until(ready, within=READY, what=f"brokers {sorted(brokers)} ready")
    except TimeoutError as exc:
        tails = "\n".join(f"node {node.node_id}:\n{node.log_tail()}" for node in nodes)
        raise ClusterFailed(f"{exc}\n{tails}") from exc


def view(port: int, *topics: str) -> metadata.ClusterView:
    """Return the metadata of the broker at this port; empty while it does not answer."""
    try:
        return metadata.ask(port, topics)
    except OSError:
        return metadata.ClusterView(brokers=frozenset(), has_controller=False, topics={})


def _random_id() -> str:
    """Return a UUID in Kafka's form. A leading dash would look like an option to Kafka's tools."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith(
        "-"
    ):
        pass
    return text
