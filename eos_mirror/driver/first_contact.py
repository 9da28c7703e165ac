"""Makes sure that the clusters answer before a verb uses them."""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.core.side import Side
from eos_mirror.errors import ClustersSilent, ConfigError, SourceUnavailable, TargetUnavailable
from eos_mirror.kafka.cluster_probe import ClusterProbe, Refusal, Silence
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.settings import clients
from eos_mirror.settings.model import FlowSettings, Settings

BOTH = tuple(Side)


def reach_clusters(
    settings: Settings, flows: Sequence[FlowSettings], *, needed: Collection[Side] = BOTH
) -> None:
    """
    Wait until each cluster of the flows has answered. All are asked at the same time.

    Args:
        needed: The sides that the caller reads. The other side is only named beside them if it
            does not answer either.

    Raises:
        ClustersSilent: A needed cluster does not answer; one line for each that does not.
    """
    deadline = Deadline(settings.connect_timeout)
    asked = {
        alias: _Asked(alias, config, deadline) for alias, config in admin_configs(flows).items()
    }
    names = [flow.flow for flow in flows]
    aliases = {n.source if side is Side.SOURCE else n.target for n in names for side in needed}
    for one in asked.values():
        one.start()
    for alias in aliases:
        asked[alias].join()
    if not any(asked[alias].silence for alias in aliases):
        return
    for one in asked.values():
        one.join()
    silent = {one.alias: one.silence for one in asked.values() if one.silence}
    lines = (no_answer(settings, alias, silence) for alias, silence in silent.items())
    raise ClustersSilent(*lines, aliases=silent.keys())


def admin_configs(flows: Sequence[FlowSettings]) -> dict[str, Mapping[str, Any]]:
    """Return client settings for connection and security, for each cluster of the flows."""
    found: dict[str, Mapping[str, Any]] = {}
    for flow in flows:
        found.setdefault(flow.flow.source, clients.source_admin(flow))
        found.setdefault(flow.flow.target, clients.target_admin(flow))
    return found


class _Asked(threading.Thread):
    """Asks one cluster. A daemon: a cluster that is not needed is not waited for."""

    def __init__(self, alias: str, config: Mapping[str, Any], deadline: Deadline) -> None:
        super().__init__(name=f"first contact with {alias}", daemon=True)
        self._config, self._deadline = config, deadline
        self.alias = alias
        self.silence: Silence | None = None

    def run(self) -> None:
        """Ask, and keep why there is no answer."""
        self.silence = ClusterProbe(self._config).ask(self._deadline)


@contextmanager
def named(settings: Settings, flow: Flow) -> Iterator[None]:
    """Raise ConfigError with the cluster of a flow that does not answer in the block."""
    try:
        yield
    except (SourceUnavailable, TargetUnavailable) as exc:
        alias = flow.source if isinstance(exc, SourceUnavailable) else flow.target
        raise ConfigError(no_answer(settings, alias, Silence(str(exc)))) from exc


def no_answer(settings: Settings, alias: str, silence: Silence) -> str:
    """Return one line that names the cluster, its address, what happened, and what to correct."""
    key = f"{alias}.bootstrap.servers"
    servers = next(
        (",".join(c.bootstrap_servers) for c in settings.clusters if c.alias == alias), ""
    )
    where, at = settings.origins.get(key, str(settings.path)), f"{key}={servers}"
    cause = silence.cause or "no answer"
    if silence.refusal is Refusal.LOGIN:
        return (
            f"{where}: cluster {alias} at {at} refuses the login: {cause}. Correct the user and "
            f"the password ({alias}.sasl.jaas.config), or {alias}.sasl.mechanism."
        )
    if silence.refusal is Refusal.TOKEN:
        return f"{where}: no login to cluster {alias} at {at}: {cause}"
    if silence.refusal is Refusal.CERTIFICATE:
        return (
            f"{where}: the certificate of cluster {alias} at {at} is not accepted: {cause}. "
            f"Correct {alias}.ssl.truststore.location."
        )
    return (
        f"{where}: cluster {alias} does not answer at {at}: {cause}. Start it, or correct the "
        f"address or {alias}.security.protocol."
    )
