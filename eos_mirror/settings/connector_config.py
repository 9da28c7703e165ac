"""
The configurations of MirrorMaker 2's connectors between two clusters, as lines of one flow.

In MirrorMaker 2 every connector has a configuration of its own. Here one flow copies, emits
checkpoints and heartbeats, so each key counts once: from the connector that decides it.
"""

from collections.abc import Iterator, Mapping

from eos_mirror.core.flow import Flow
from eos_mirror.settings import accepted
from eos_mirror.settings.cluster_config import add_cluster
from eos_mirror.settings.draft import Draft, Entry
from eos_mirror.settings.keys import GROUP_ROWS, HEARTBEAT_ROWS

SOURCE, CHECKPOINT, HEARTBEAT = (
    "MirrorSourceConnector",
    "MirrorCheckpointConnector",
    "MirrorHeartbeatConnector",
)
WITHOUT = {
    SOURCE: "no topic is copied",
    CHECKPOINT: "no checkpoints are emitted",
    HEARTBEAT: "no heartbeats are emitted",
}
"""Every connector of MirrorMaker 2, and what does not happen without it."""

TASKS = {
    CHECKPOINT: "one process emits the checkpoints of a flow",
    HEARTBEAT: "the run emits the heartbeats",
}
"""Connector to the reason why its number of tasks does not count."""

OF_SOURCE = frozenset({"emit.offset-syncs.enabled", "offset-syncs.topic.replication.factor"})
"""Group settings that the source connector decides."""

DECIDED_BY = {
    **{row.name: CHECKPOINT for row in GROUP_ROWS if row.name not in OF_SOURCE},
    **{row.name: HEARTBEAT for row in HEARTBEAT_ROWS},
}
"""Key to the connector that decides it; the source connector decides the others."""

SELECTION = ("topics", "topics.exclude", "heartbeats.replication.enabled")
SIDES = ("source.cluster.", "target.cluster.")
CONSUMED = frozenset({"name", "connector.class"})
OLD_NAMES = {
    "topics.blacklist": "topics.exclude",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
}
"""Names that MirrorMaker 2 had before Kafka 4.0."""

HEARTBEATS = "emit.heartbeats.enabled"
CLIENTS = ("consumer.", "producer.", "admin.")
RESET = ("consumer.auto.offset.reset", "source.consumer.auto.offset.reset")
SYNC_PRODUCERS = ("producer.", "source.producer.", "target.producer.")
OVERRIDE = "producer.override."

Config = Mapping[str, Entry]
"""The configuration of a connector, by key."""


def add_flow(flow: Flow, connectors: Mapping[str, Config], path: str, draft: Draft) -> None:
    """
    Add the lines of a flow and of its clusters.

    Args:
        connectors: Class name, without package, to configuration.
        path: Of the definition of the flow.
    """
    if flow in draft.flows:
        first = draft.flows[flow]
        draft.fault(path, f"{flow} is defined in {first}, too; join them, or convert one at a time")
        return
    draft.flows[flow] = path
    owner = str(flow)
    draft.add(owner, "enabled", Entry(value="true", path=path))
    _add_absent(flow, connectors, path, draft)
    for kind in WITHOUT:
        config = connectors.get(kind, {})
        for side, alias in zip(SIDES, (flow.source, flow.target), strict=True):
            add_cluster(alias, _of_side(side, config), draft)
        for name, entry in config.items():
            if not name.startswith(SIDES) and name not in CONSUMED:
                _add(OLD_NAMES.get(name, name), entry, kind, connectors, flow, draft)


def _add_absent(flow: Flow, connectors: Mapping[str, Config], path: str, draft: Draft) -> None:
    """Add the lines that keep a flow from doing what no connector does."""
    owner = str(flow)
    if SOURCE not in connectors:
        draft.add(owner, "topics", Entry(value="", path=path))
        draft.add(owner, "heartbeats.replication.enabled", Entry(value="false", path=path))
        draft.remarks.append(
            f"{path} has no source connector, so {flow} copies no topic. To copy topics, set "
            f"{flow}.topics and remove {flow}.heartbeats.replication.enabled."
        )
    if CHECKPOINT not in connectors:
        draft.add(owner, "emit.checkpoints.enabled", Entry(value="false", path=path))
    if HEARTBEAT in connectors and HEARTBEATS not in connectors[HEARTBEAT]:
        draft.add(owner, HEARTBEATS, Entry(value="true", path=path))


def _of_side(side: str, config: Config) -> dict[str, Entry]:
    """Return the settings of one cluster in a connector's configuration."""
    return {
        name.removeprefix(side): entry
        for name, entry in config.items()
        if name.startswith(side) and name != f"{side}alias"
    }


def _add(
    name: str,
    entry: Entry,
    kind: str,
    connectors: Mapping[str, Config],
    flow: Flow,
    draft: Draft,
) -> None:
    reason = _useless(name, kind)
    if reason is None and not _is_of_client(name):
        reason = _overruled(name, entry, kind, connectors)
    if reason:
        draft.refuse(entry.path, reason)
    elif reason is None and name in RESET and entry.value == "latest":
        draft.add(str(flow), "start.position", entry)
    elif reason is None:
        for line in _lines(name, connectors[kind]):
            draft.add(str(flow), line, entry)


def _useless(name: str, kind: str) -> str | None:
    """Return why no flow uses a key of this connector; None if a flow does."""
    about = accepted.purpose(name)
    if about is not None:
        return f"no effect here ({about})"
    if name == "tasks.max":
        return TASKS.get(kind)
    if _is_of_client(name) and kind != SOURCE:
        return f"sets only the clients of the {kind}"
    if name.startswith(SYNC_PRODUCERS) and not name.startswith(OVERRIDE):
        return f"sets only the producer of offset syncs; for the data, write A->B.{OVERRIDE}*"
    return None


def _overruled(name: str, entry: Entry, kind: str, connectors: Mapping[str, Config]) -> str | None:
    """Return what decides a key instead of this connector; empty if it agrees, None if nothing."""
    decider = DECIDED_BY.get(name, SOURCE)
    if decider not in connectors and (decider != SOURCE or name in SELECTION):
        return f"without a {decider}, {WITHOUT[decider]}"
    if decider == kind or decider not in connectors:
        return None
    decided = _find(name, connectors[decider])
    if decided is None:
        return f"the {decider} decides it, and does not set it"
    return "" if decided.value == entry.value else f"{decided.path} decides it"


def _find(name: str, config: Config) -> Entry | None:
    """Return the entry of a key, also under its old name."""
    return next((e for key, e in config.items() if OLD_NAMES.get(key, key) == name), None)


def _is_of_client(name: str) -> bool:
    return name.removeprefix("source.").removeprefix("target.").startswith(CLIENTS)


def _lines(name: str, config: Config) -> Iterator[str]:
    """Yield the keys that have the effect that a key has on the source connector."""
    if name.startswith("consumer."):
        names = [f"source.{name}"]
    elif name.startswith("admin."):
        names = [f"source.{name}", f"target.{name}"]
    else:
        yield name
        return
    yield from (one for one in names if one not in config)
