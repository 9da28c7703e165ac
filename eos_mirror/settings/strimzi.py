"""Strimzi's `KafkaMirrorMaker2` resources, converted to an mm2.properties."""

from collections.abc import Iterator, Mapping
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.errors import ConfigError
from eos_mirror.settings.connector_config import (
    CHECKPOINT,
    HEARTBEAT,
    SOURCE,
    Config,
    add_flow,
)
from eos_mirror.settings.draft import Draft, Entry
from eos_mirror.settings.fields import Fields, fields_of
from eos_mirror.settings.strimzi_cluster import add_strimzi_cluster, declare_providers

KIND = "KafkaMirrorMaker2"
INSTALL = "pip install 'eos-mirror[strimzi]'"
CONNECTORS = {
    "sourceConnector": SOURCE,
    "checkpointConnector": CHECKPOINT,
    "heartbeatConnector": HEARTBEAT,
}
PATTERNS = {
    "topicsPattern": "topics",
    "topicsExcludePattern": "topics.exclude",
    "topicsBlacklistPattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsExcludePattern": "groups.exclude",
    "groupsBlacklistPattern": "groups.exclude",
}
"""Fields of a mirror to keys. The first of two fields with the same key counts, as in Strimzi."""

READ_BY = {
    "topics": (SOURCE, CHECKPOINT),
    "topics.exclude": (SOURCE, CHECKPOINT),
    "groups": (CHECKPOINT,),
    "groups.exclude": (CHECKPOINT,),
}
_DEPLOYMENT = "belongs to the deployment: docs/deployment.md"
OF_RESOURCE = {
    "status": "the state of the operator",
}
OF_METADATA = dict.fromkeys(
    ("labels", "annotations", "ownerReferences", "finalizers"), "describes the resource"
)
OF_SPEC = {
    "version": "there is no Kafka Connect",
    "replicas": "a run has no workers: tasks.max counts the tasks, and more runs stand by",
    "image": _DEPLOYMENT,
    "resources": _DEPLOYMENT,
    "livenessProbe": _DEPLOYMENT,
    "readinessProbe": _DEPLOYMENT,
    "template": _DEPLOYMENT,
    "affinity": _DEPLOYMENT,
    "tolerations": _DEPLOYMENT,
    "clientRackInitImage": _DEPLOYMENT,
    "externalConfiguration": "give these variables and files to the run",
    "jvmOptions": "tasks are Python processes; spark.* sets the JVM of Spark",
    "jmxOptions": "there is no JMX; set metrics.exporters",
    "metricsConfig": "set metrics.exporters = prometheus",
    "metrics": "set metrics.exporters = prometheus",
    "logging": "run --verbose logs details",
    "rack": "set A->B.source.consumer.client.rack to the rack of the host",
    "tracing": "tracing is not available",
    "connectCluster": "there is no Kafka Connect",
}
OF_CONNECTOR = {
    "autoRestart": "a task that fails is always restarted",
    "version": "there is no Kafka Connect",
    "listOffsets": "use eos-mirror status",
    "alterOffsets": "positions are in groups on the target",
}
STATES = {"paused": "pause", "stopped": "stop"}
"""Strimzi's states of a connector, and the verbs."""


def convert_resources(text: str, *, file: str) -> Draft:
    """
    Convert every `KafkaMirrorMaker2` of a YAML file, in the form of v1 or of v1beta2.

    Raises:
        ConfigError: The file is no YAML, has no such resource, or a needed field is missing; says
            where and what to do. Also if the YAML library is not installed.
    """
    draft = Draft(file=file)
    resources = []
    for at, document in enumerate(_documents(text, file)):
        fields = fields_of(document, f"document {at + 1}", draft)
        kind, name = str(fields.take("kind")), _name(fields)
        if kind == KIND:
            resources.append((name, fields))
        else:
            draft.refuse(f"{kind} {name}", f"only resources of kind {KIND} are converted")
    if not resources:
        raise ConfigError(f"{file}: has no resource of kind {KIND}; name another file")
    for name, resource in resources:
        resource.path = name if len(resources) > 1 else ""
        _add_resource(resource, draft)
    return draft


def _documents(text: str, file: str) -> Iterator[Any]:
    """Yield the resources of a YAML file, also those inside a list of `kubectl get`."""
    try:
        import yaml  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise ConfigError(f"{file}: PyYAML is not installed: {INSTALL}") from exc
    try:
        documents = [one for one in yaml.safe_load_all(text) if one is not None]
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        problem = getattr(exc, "problem", None) or "a character is not allowed"
        raise ConfigError(f"{place}: this is no YAML: {problem}; correct it") from exc
    for one in documents:
        if isinstance(one, dict) and str(one.get("kind", "")).endswith("List"):
            yield from one.get("items") or ()
        else:
            yield one


def _name(resource: Fields) -> str:
    """Take `metadata` and return the name in it."""
    metadata = resource.content.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return str(name or "without a name")


def _add_resource(resource: Fields, draft: Draft) -> None:
    metadata = resource.inner("metadata")
    if metadata is not None:
        metadata.content = {k: v for k, v in metadata.content.items() if k in OF_METADATA}
        metadata.leave(OF_METADATA)
    resource.take("apiVersion")
    spec = resource.inner("spec")
    if spec is None:
        raise ConfigError(f"{draft.file}: {resource.path_of('spec')} is missing; add it")
    clusters, mirrors = _clusters_and_mirrors(spec)
    for cluster in clusters.values():
        declare_providers(cluster, draft)
    sources = {source for source, _, _ in mirrors}
    targets = {target for _, target, _ in mirrors}
    for alias in dict.fromkeys(alias for mirror in mirrors for alias in mirror[:2]):
        cluster = clusters.pop(alias)
        roles = ("consumer",) * (alias in sources) + ("producer",) * (alias in targets)
        add_strimzi_cluster(alias, cluster, roles, draft)
    for cluster in clusters.values():
        draft.refuse(cluster.path, "no mirror uses this cluster")
    for source, target, mirror in mirrors:
        _add_mirror(Flow(source, target), mirror, draft)
    spec.leave(OF_SPEC)
    resource.leave(OF_RESOURCE)


Mirrors = list[tuple[str, str, Fields]]


def _clusters_and_mirrors(spec: Fields) -> tuple[dict[str, Fields], Mirrors]:
    """Return the clusters by alias, and each mirror with the aliases of its source and target."""
    mirrors = spec.several("mirrors")
    if not mirrors:
        raise ConfigError(f"{spec.draft.file}: {spec.path_of('mirrors')} is missing; add one")
    target = spec.inner("target")
    if target is None:
        return _of_v1beta2(spec, mirrors)
    target_alias = target.needed("alias").value
    clusters, found = {target_alias: target}, []
    for mirror in mirrors:
        source = mirror.inner("source")
        if source is None:
            raise ConfigError(f"{spec.draft.file}: {mirror.path_of('source')} is missing; add it")
        alias = source.needed("alias")
        if alias.value in clusters:
            raise ConfigError(
                f"{spec.draft.file}: {alias.path} = {alias.value}: another cluster has this alias; "
                "rename one, or join the mirrors"
            )
        clusters[alias.value] = source
        found.append((alias.value, target_alias, mirror))
    return clusters, found


def _of_v1beta2(spec: Fields, mirrors: list[Fields]) -> tuple[dict[str, Fields], Mirrors]:
    clusters = {one.needed("alias").value: one for one in spec.several("clusters")}
    if not clusters:
        raise ConfigError(f"{spec.draft.file}: {spec.path_of('target')} is missing; add it")
    found = []
    for mirror in mirrors:
        ends = [mirror.needed(name) for name in ("sourceCluster", "targetCluster")]
        for end in ends:
            if end.value not in clusters:
                names = ", ".join(clusters)
                raise ConfigError(
                    f"{spec.draft.file}: {end.path} = {end.value}: there is no such cluster; "
                    f"spec.clusters has {names}"
                )
        found.append((ends[0].value, ends[1].value, mirror))
    if spec.content.get("connectCluster") in {target for _, target, _ in found}:
        spec.take("connectCluster")
    return clusters, found


def _add_mirror(flow: Flow, mirror: Fields, draft: Draft) -> None:
    patterns: dict[str, Entry] = {}
    for name, key in PATTERNS.items():
        entry = mirror.text(name)
        if entry is None:
            continue
        if key in patterns:
            draft.refuse(entry.path, f"{patterns[key].path} counts")
        patterns.setdefault(key, entry)
    connectors: dict[str, Config] = {}
    for name, kind in CONNECTORS.items():
        connector = mirror.inner(name)
        if connector is not None:
            connectors[kind] = _connector(connector, kind, flow, patterns)
    for key, entry in patterns.items():
        if not set(READ_BY[key]) & set(connectors):
            draft.refuse(entry.path, f"no connector of {mirror.path} reads it")
    add_flow(flow, connectors, mirror.path, draft)
    mirror.leave({})


def _connector(
    fields: Fields, kind: str, flow: Flow, patterns: Mapping[str, Entry]
) -> dict[str, Entry]:
    """Return the configuration that Strimzi gives to a connector."""
    own = fields.config("config")
    theirs = {key: entry for key, entry in patterns.items() if kind in READ_BY[key]}
    for key in theirs.keys() & own.keys():
        fields.draft.refuse(own[key].path, f"{theirs[key].path} counts")
    tasks = fields.text("tasksMax")
    if tasks is not None:
        theirs["tasks.max"] = tasks
    _take_state(fields, kind, flow)
    fields.leave(OF_CONNECTOR)
    return {**theirs, **{key: entry for key, entry in own.items() if key not in theirs}}


def _take_state(fields: Fields, kind: str, flow: Flow) -> None:
    """Report a connector that does not run, because the flow would."""
    paused, state = fields.text("pause"), fields.text("state")
    if state is None and paused is not None and paused.value == "true":
        state = Entry(value="paused", path=paused.path)
    if state is None or state.value not in STATES:
        return
    if kind == SOURCE:
        verb = f"eos-mirror {STATES[state.value]} FILE '{flow}'"
        fields.draft.refuse(state.path, f"is no part of the configuration: run {verb}")
        fields.draft.remarks.append(
            f"{flow} is {state.value} in Strimzi. A run mirrors it, unless you order {verb}."
        )
    else:
        key = f"emit.{'checkpoints' if kind == CHECKPOINT else 'heartbeats'}.enabled"
        fields.draft.refuse(state.path, f"set {flow}.{key} = false")
        fields.draft.remarks.append(f"{fields.path} is {state.value}: set {flow}.{key} = false.")
