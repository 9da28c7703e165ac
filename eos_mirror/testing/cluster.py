"""A Kafka cluster of real brokers on this machine, for as long as a test needs it."""

import atexit
import dataclasses
import functools
import shutil
import subprocess
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from confluent_kafka.admin import AdminClient, NewTopic

from eos_mirror.testing import boot
from eos_mirror.testing.clients import (
    QUIET,
    create_scram_users,
    create_topic_and_wait,
    java_properties,
    librdkafka_config,
)
from eos_mirror.testing.errors import ClusterFailed
from eos_mirror.testing.installation import find_installation
from eos_mirror.testing.metadata import PartitionView
from eos_mirror.testing.node import Node
from eos_mirror.testing.releases import Release, chosen_release
from eos_mirror.testing.run_folder import keep_logs, new_run_folder
from eos_mirror.testing.spec import SUPER_USER, ClusterSpec, NodePorts, Security
from eos_mirror.testing.tcp_ports import PortLease
from eos_mirror.testing.tls import Keys, make_keys
from eos_mirror.testing.tools import run_tool
from eos_mirror.testing.waiting import wait_until

START_ATTEMPTS = 3
"""A start is only repeated if another program took a port at the last moment."""
IN_SYNC = timedelta(seconds=30)

running_clusters: "weakref.WeakSet[KafkaCluster]" = weakref.WeakSet()
"""Clusters of this process that were started and not yet stopped."""

installation = functools.cache(find_installation)


class KafkaCluster:
    """
    Real Kafka brokers, each in a separate process, on ports of the loopback interface.

    A. No process outlives this one, however it exits (Linux; elsewhere the next start sweeps).
    B. A node keeps its ports from `start` to `stop`, also across kills and restarts.
    C. `stop` deletes all data. The logs are kept only if `keep_logs` was set, or if
       an error ends the `with` block.

    Not thread-safe, except that different clusters may be used by different threads.
    """

    def __init__(  # noqa: PLR0913 - all of them keywords with a default
        self,
        nodes: int = 1,
        *,
        name: str = "kafka",
        controllers: Literal["combined", "separate"] = "combined",
        security: Security = Security.PLAINTEXT,
        users: Mapping[str, str] | None = None,
        authorizer: bool = False,
        broker_config: Mapping[str, object] | None = None,
        features: Mapping[str, int] | None = None,
        heap: str = "384m",
        fast_start: bool = True,
        proxied: bool = False,
        release: Release | None = None,
    ) -> None:
        """
        Describe a cluster; `start` or `with` runs it.

        Args:
            nodes: Brokers, with the ids 1 to `nodes`.
            security: With `Security.TLS` brokers and clients authenticate each other with keys
                that are made at the start (seconds).
            controllers: `combined`: every broker is a controller too. `separate`: one more
                process, id 100, so that any broker may die without an election of controllers.
            users: Passwords by user name, in addition to the super user `admin`. SASL only.
            authorizer: Enforce ACLs. With PLAINTEXT every client is a super user.
            broker_config: Overrides every setting of ours.
            features: Feature levels, such as `{"transaction.version": 1}`.
            fast_start: Compile less; start in half the time. Benchmarks use False; their brokers
                then have all of `heap` from the start, as in production.
            proxied: Give each broker a second client listener that advertises a fault proxy.
            release: Release of Kafka; None: the one that EOS_MIRROR_TEST_KAFKA names.
        """
        self.spec = ClusterSpec(
            nodes=nodes,
            name=name,
            controllers=controllers,
            security=security,
            users={SUPER_USER: SUPER_USER, **(users or {})},
            authorizer=authorizer,
            broker_config=dict(broker_config or {}),
            features=dict(features or {}),
            heap=heap,
            fast_start=fast_start,
            proxied=proxied,
        )
        self.keep_logs = False
        self.release = release or chosen_release()
        self._nodes: dict[int, Node] = {}
        self._ports: dict[int, NodePorts] = {}
        self._admin: AdminClient | None = None
        self._keys: Keys | None = None
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.keep_logs = self.keep_logs or error is not None
        self.stop()

    def start(self) -> None:
        """
        Start all nodes and wait until they serve.

        Raises:
            NotInstalled: This machine has no Java or no jars.
            ClusterFailed: A node did not start; carries its last log lines.
        """
        if self._nodes:
            raise ClusterFailed(f"cluster {self.spec.name} is already started")
        for attempts_left in reversed(range(START_ATTEMPTS)):
            try:
                self._start()
            except BaseException:
                port_lost = any(node.lost_its_port for node in self._nodes.values())
                self.stop()
                if not (port_lost and attempts_left):
                    raise
            else:
                return

    def stop(self) -> None:
        """Kill every node and remove its data. Harmless when nothing runs."""
        for node in self._nodes.values():
            node.kill()
        self._resources.close()
        self._nodes, self._ports, self._admin, self._keys = {}, {}, None, None
        running_clusters.discard(self)

    @property
    def bootstrap(self) -> str:
        """Return `bootstrap.servers` for clients."""
        return self._addresses("client")

    @property
    def proxied_bootstrap(self) -> str:
        """Return `bootstrap.servers` for clients that connect through the fault proxies."""
        return self._addresses("proxy")

    @property
    def proxy_ports(self) -> Mapping[int, tuple[int, int]]:
        """Return for each node the port of its fault proxy, and the port that it forwards to."""
        if not self.spec.proxied:
            raise ClusterFailed("this cluster has no proxied listener: create it with proxied=True")
        return {
            broker: (self._ports[broker].proxy, self._ports[broker].proxied)
            for broker in self.spec.broker_ids
        }

    def client_config(self, user: str | None = None) -> dict[str, str]:
        """Return librdkafka's configuration of a user; of the super user by default."""
        config = librdkafka_config(self.bootstrap, self.spec.security, *self._login(user))
        return config if self._keys is None else {**config, **self._keys.librdkafka_config()}

    def java_properties(self, user: str | None = None) -> dict[str, str]:
        """Return the same for Java clients and Kafka's tools."""
        config = java_properties(self.bootstrap, self.spec.security, *self._login(user))
        return config if self._keys is None else {**config, **self._keys.java_properties()}

    def admin(self) -> AdminClient:
        """Return the cluster's admin client, with all rights, on the internal listener."""
        if self._admin is None:
            address = self._addresses("internal")
            self._admin = AdminClient({"bootstrap.servers": address, "log_level": QUIET})
        return self._admin

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic and wait until every live broker knows a leader for each partition."""
        replicas = replication_factor or self.spec.replication_factor
        topic = NewTopic(name, partitions, replicas, config=dict(config or {}))
        create_topic_and_wait(
            self.admin(),
            topic,
            known=lambda: all(
                sum(seen.leader is not None for seen in view.values()) == partitions
                for view in self._views(name)
            ),
        )

    def leader_of(self, topic: str, partition: int = 0) -> int | None:
        """Return the leader's node id as the first live broker knows it; None without a leader."""
        seen = next(self._views(topic), {}).get(partition)
        return seen.leader if seen else None

    def leaders(self, topic: str) -> frozenset[int | None]:
        """Return the leaders of all partitions as the first live broker knows them."""
        return frozenset(seen.leader for seen in next(self._views(topic), {}).values())

    def in_sync(self, topic: str, partition: int = 0) -> int:
        """Return how many replicas are in sync, as the first live broker knows it."""
        return len(next(self._views(topic), {})[partition].isr)

    def wait_isr(self, topic: str, *, within: timedelta = IN_SYNC) -> None:
        """Wait until every broker knows every replica of every partition as in sync."""
        wait_until(
            lambda: all(
                view and all(len(seen.isr) == len(seen.replicas) for seen in view.values())
                for view in self._views(topic)
            ),
            within=within,
            what=f"all replicas of {topic} in sync",
        )

    def kill(self, node: int) -> None:
        """Send SIGKILL to a node and wait for its exit."""
        self._nodes[node].kill()

    def terminate(self, node: int) -> None:
        """Send SIGTERM to a node and wait for its controlled shutdown."""
        self._nodes[node].terminate()

    def start_node(self, node: int, *, wait: bool = True) -> None:
        """Start a node that was killed or terminated; by default wait until it serves."""
        self._nodes[node].start()
        if wait:
            self._wait_ready()

    def pause(self, node: int) -> None:
        """Freeze a node: its connections stay open and nothing answers."""
        self._nodes[node].pause()

    def resume(self, node: int) -> None:
        """Resume a frozen node."""
        self._nodes[node].resume()

    def log(self, node: int = 1) -> Path:
        """Return the log file of a node; it does not exist after `stop`."""
        return self._nodes[node].log

    def log_tails(self) -> dict[int, str]:
        """Return the last log lines of every node."""
        return {node_id: node.log_tail() for node_id, node in self._nodes.items()}

    def data(self, node: int = 1) -> Path:
        """Return the log folder of a node: one folder per partition."""
        return self._nodes[node].data

    def tool(
        self,
        name: str,
        *arguments: str,
        stdin: str | None = None,
        timeout: timedelta = timedelta(seconds=60),
    ) -> subprocess.CompletedProcess[str]:
        """
        Run one of Kafka's own tools with all rights and return its output.

        Args:
            name: Short name such as `ConsoleConsumer`, or a main class.
            arguments: The cluster is added unless they name one.

        Raises:
            TimeoutError: The tool did not exit in time.
        """
        return run_tool(
            installation(self.release),
            name,
            *arguments,
            bootstrap=self._addresses("internal"),
            stdin=stdin,
            timeout_s=timeout.total_seconds(),
        )

    def _start(self) -> None:
        folder = new_run_folder(self.spec.name)
        self._resources.callback(self._remove, folder)
        self._ports = {node: self._lease_ports() for node in self.spec.node_ids}
        spec, installed = self.spec, installation(self.release)
        if spec.security is Security.TLS:
            self._keys = make_keys(installed.java, folder)
            with_keys = {**self._keys.broker_settings(), **spec.broker_config}
            spec = dataclasses.replace(spec, broker_config=with_keys)
        self._nodes = boot.prepare_nodes(spec, installed, folder=folder, ports=self._ports)
        running_clusters.add(self)
        for node in self._nodes.values():
            node.start()
        self._wait_ready()
        if self.spec.security is Security.SASL_SCRAM:
            create_scram_users(self.admin(), self.spec.users)

    def _wait_ready(self) -> None:
        """Wait for every node that was started, except those that a test has killed."""
        alive = [node for node in self._nodes.values() if node.running]
        ids = {node.node_id for node in alive}
        brokers = {
            broker: self._ports[broker].internal for broker in self.spec.broker_ids if broker in ids
        }
        boot.wait_ready(alive, brokers=brokers)

    def _lease_ports(self) -> NodePorts:
        leases = [PortLease() for _ in dataclasses.fields(NodePorts)]
        for lease in leases:
            self._resources.callback(lease.release)
        client, internal, controller, proxied, proxy = (lease.port for lease in leases)
        return NodePorts(
            client=client, internal=internal, controller=controller, proxied=proxied, proxy=proxy
        )

    def _remove(self, folder: Path) -> None:
        if self.keep_logs:
            keep_logs(folder)
        shutil.rmtree(folder, ignore_errors=True)

    def _views(self, topic: str) -> Iterator[Mapping[int, PartitionView]]:
        """Yield the partitions of a topic as each live broker knows them."""
        for broker in self.spec.broker_ids:
            if self._nodes[broker].running:
                yield boot.view(self._ports[broker].internal, topic).topics.get(topic, {})

    def _addresses(self, listener: Literal["client", "internal", "proxy"]) -> str:
        if not self._nodes:
            raise ClusterFailed(f"cluster {self.spec.name} is not running")
        ports = [getattr(self._ports[broker], listener) for broker in self.spec.broker_ids]
        return ",".join(f"127.0.0.1:{port}" for port in ports)

    def _login(self, user: str | None) -> tuple[str, str]:
        name = user or SUPER_USER
        return name, self.spec.users[name]


def start_clusters(*clusters: KafkaCluster) -> None:
    """Start clusters at the same time; if one fails, stop all and raise its error."""
    for cluster in clusters:
        installation(cluster.release)  # fetched once, not once per thread
    with ThreadPoolExecutor(len(clusters)) as threads:
        starts = [threads.submit(cluster.start) for cluster in clusters]
    failure = next((error for start in starts if (error := start.exception())), None)
    if failure:
        for cluster in clusters:
            cluster.stop()
        raise failure


@atexit.register
def _stop_all() -> None:
    for cluster in list(running_clusters):
        cluster.stop()
