"""A cluster that already runs elsewhere, and the interface that all backends share."""

import json
import subprocess
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Protocol, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from eos_mirror.errors import ConfigError
from eos_mirror.testing.clients import QUIET, create_topic_and_wait
from eos_mirror.testing.errors import ClusterFailed
from eos_mirror.testing.installation import find_installation
from eos_mirror.testing.spec import properties_text
from eos_mirror.testing.tools import find_tool, run_tool

BROKERS_DEFAULT = -1
"""Kafka's value that selects the broker's default.replication.factor."""
ANSWER_S = 10.0


class Cluster(Protocol):
    """What tests may use of a cluster, on any backend."""

    @property
    def bootstrap(self) -> str:
        """Return `bootstrap.servers` for clients."""

    def client_config(self, user: str | None = None) -> dict[str, str]:
        """Return librdkafka's configuration."""

    def java_properties(self, user: str | None = None) -> dict[str, str]:
        """Return the same for Java clients."""

    def admin(self) -> AdminClient:
        """Return an admin client with all rights."""

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic and wait until it can be used."""

    def tool(
        self,
        name: str,
        *arguments: str,
        stdin: str | None = None,
        timeout: timedelta = timedelta(seconds=60),
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's own tools with all rights."""


class ExternalCluster:
    """A cluster known by its address."""

    def __init__(
        self,
        bootstrap: str,
        *,
        config: Mapping[str, str] | None = None,
        java_config: Mapping[str, str] | None = None,
    ) -> None:
        """
        Args:
            config: Additional librdkafka configuration, such as logins.
            java_config: The same for Java clients and Kafka's tools.
        """
        self.bootstrap = bootstrap
        self._config = dict(config or {})
        self._java_config = dict(java_config or {})
        self._admin: AdminClient | None = None

    @classmethod
    def from_environment(cls, side: str, environ: Mapping[str, str]) -> Self:
        """
        Return the cluster at EOS_MIRROR_TEST_BOOTSTRAP_<side>.

        `..._CONFIG` and `..._JAVA_CONFIG` are JSON objects.

        Raises:
            ConfigError: A JSON text is not an object of strings.
        """
        variable = f"EOS_MIRROR_TEST_BOOTSTRAP_{side}"
        return cls(
            environ[variable],
            config=_json_object(f"{variable}_CONFIG", environ),
            java_config=_json_object(f"{variable}_JAVA_CONFIG", environ),
        )

    def client_config(self, user: str | None = None) -> dict[str, str]:
        """Return librdkafka's configuration. There is only one user."""
        _only_user(user)
        return {"bootstrap.servers": self.bootstrap, **self._config}

    def java_properties(self, user: str | None = None) -> dict[str, str]:
        """Return the same for Java clients."""
        _only_user(user)
        return {"bootstrap.servers": self.bootstrap, **self._java_config}

    def admin(self) -> AdminClient:
        """Return the admin client, with the rights of the configured user."""
        if self._admin is None:
            self._admin = AdminClient({**self.client_config(), "log_level": QUIET})
        return self._admin

    def check(self) -> None:
        """Raise ClusterFailed unless the cluster answers."""
        try:
            self.admin().list_topics(timeout=ANSWER_S)
        except KafkaException as exc:
            raise ClusterFailed(f"{self.bootstrap} does not answer: {exc}") from exc

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic and wait until every partition has a leader."""
        admin = self.admin()
        replicas = BROKERS_DEFAULT if replication_factor is None else replication_factor

        def known() -> bool:
            found = admin.list_topics(name, timeout=ANSWER_S).topics[name].partitions
            return len(found) == partitions and all(one.leader >= 0 for one in found.values())

        topic = NewTopic(name, partitions, replicas, config=dict(config or {}))
        create_topic_and_wait(admin, topic, known=known)

    def tool(
        self,
        name: str,
        *arguments: str,
        stdin: str | None = None,
        timeout: timedelta = timedelta(seconds=60),
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's own tools; this needs Java and the jars on this machine."""
        with tempfile.TemporaryDirectory() as folder:
            if self._java_config and find_tool(name).bootstrap_option:
                path = Path(folder) / "client.properties"
                path.write_text(properties_text(self._java_config), encoding="utf-8")
                arguments = ("--command-config", str(path), *arguments)
            return run_tool(
                find_installation(),
                name,
                *arguments,
                bootstrap=self.bootstrap,
                stdin=stdin,
                timeout_s=timeout.total_seconds(),
            )


def _json_object(variable: str, environ: Mapping[str, str]) -> dict[str, str]:
    try:
        value = json.loads(environ.get(variable) or "{}")
    except json.JSONDecodeError as exc:
        raise ConfigError(f"{variable} is not JSON: {exc}") from exc
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ConfigError(f"{variable} is not a JSON object of strings")
    return value


def _only_user(user: str | None) -> None:
    if user is not None:
        raise ClusterFailed("an external cluster has one user; this test needs brokers of its own")
