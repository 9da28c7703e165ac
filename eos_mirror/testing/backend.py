"""Finds the backend that can run clusters here, and starts the pair that tests share."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from eos_mirror.errors import ConfigError
from eos_mirror.testing.cluster import KafkaCluster, installation, start_clusters
from eos_mirror.testing.containers import DockerCluster, docker_problem
from eos_mirror.testing.errors import NotInstalled
from eos_mirror.testing.external import Cluster, ExternalCluster
from eos_mirror.testing.releases import chosen_release, source_release

SOURCE, TARGET = "EOS_MIRROR_TEST_BOOTSTRAP_SRC", "EOS_MIRROR_TEST_BOOTSTRAP_DST"
WANTED = "EOS_MIRROR_TEST_BACKEND"

Probe = Callable[[], str | None]
"""Returns why a backend cannot be used here; None if it can."""


class Backend(StrEnum):
    """What runs the brokers, in order of preference."""

    EXTERNAL = "external"
    JVM = "jvm"
    DOCKER = "docker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """
    The backend for this machine, and why.

    Attributes:
        backend: None if none can be used.
        reason: One line of text.
    """

    backend: Backend | None
    reason: str

    def __str__(self) -> str:
        return f"Kafka brokers: {self.backend or 'none'} ({self.reason})"


def choose_backend(
    environ: Mapping[str, str] = os.environ, *, probes: Mapping[Backend, Probe] | None = None
) -> Choice:
    """
    Return the first backend that works, or the one that EOS_MIRROR_TEST_BACKEND names.

    Raises:
        ConfigError: The variables contradict each other.
    """
    probes = probes or {
        Backend.EXTERNAL: lambda: external_problem(environ),
        Backend.JVM: jvm_problem,
        Backend.DOCKER: docker_problem,
    }
    wanted = environ.get(WANTED, "auto")
    if wanted not in {"auto", *Backend}:
        raise ConfigError(f"{WANTED}={wanted}: use auto, {', '.join(Backend)}")
    candidates = list(Backend) if wanted == "auto" else [Backend(wanted)]
    problems: list[str] = []
    for backend in candidates:
        problem = probes[backend]()
        if problem is None:
            chosen = f"{WANTED}={wanted}" if wanted != "auto" else "the first that works here"
            return Choice(backend=backend, reason="; ".join([chosen, *problems]))
        problems.append(f"{backend}: {problem}")
    return Choice(backend=None, reason="; ".join(problems))


def external_problem(environ: Mapping[str, str]) -> str | None:
    """
    Return why there is no external pair; None if there is one.

    Raises:
        ConfigError: Only one of the two addresses is set.
    """
    given = [variable for variable in (SOURCE, TARGET) if environ.get(variable)]
    if len(given) == 1:
        raise ConfigError(f"{given[0]} is set alone: set {SOURCE} and {TARGET}, or neither")
    return None if given else f"{SOURCE} and {TARGET} are not set"


def jvm_problem() -> str | None:
    """Return why brokers cannot run here, or None. Fetches Kafka's jars the first time."""
    try:
        installation()
    except NotInstalled as exc:
        return str(exc)
    return None


@contextmanager
def cluster_pair(
    backend: Backend, environ: Mapping[str, str] = os.environ
) -> Iterator[tuple[Cluster, Cluster]]:
    """Yield a source and a target, single nodes unless external; stop them at the end."""
    if backend is Backend.EXTERNAL:
        external = [ExternalCluster.from_environment(side, environ) for side in ("SRC", "DST")]
        for cluster in external:
            cluster.check()
        yield external[0], external[1]
    elif backend is Backend.JVM:
        source = KafkaCluster(name="source", release=source_release(environ))
        target = KafkaCluster(name="target", release=chosen_release(environ))
        start_clusters(source, target)
        try:
            yield source, target
        finally:
            source.stop()
            target.stop()
    else:
        with DockerCluster(name="source") as first, DockerCluster(name="target") as second:
            yield first.clients, second.clients
