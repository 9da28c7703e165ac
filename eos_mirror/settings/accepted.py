"""
Keys of MirrorMaker 2 and its Connect worker that this version accepts and does not use.

A configuration that runs in MirrorMaker 2 starts here too; a note names each key without effect.
"""

_HTTPS = (
    "cipher.suites", "client.auth", "enabled.protocols", "endpoint.identification.algorithm",
    "key.password", "keymanager.algorithm", "keystore.certificate.chain", "keystore.key",
    "keystore.password", "keystore.type", "protocol", "provider", "secure.random.implementation",
    "trustmanager.algorithm", "truststore.certificates", "truststore.location",
    "truststore.password", "truststore.type",
)  # fmt: skip

NAMES: dict[str, str] = {
    "name": "connector name",
    "connector.class": "connector class",
    "tasks.max.enforce": "task limit",
    "config.action.reload": "Connect reload",
    "errors.retry.timeout": "Connect error handling",
    "errors.retry.delay.max.ms": "Connect error handling",
    "errors.log.enable": "Connect error handling",
    "errors.log.include.messages": "Connect error handling",
    "errors.deadletterqueue.context.headers.enable": "a quarantined record always has them",
    "source.cluster.alias": "follows from the flow",
    "target.cluster.alias": "follows from the flow",
    "forwarding.admin.class": "Java class",
    "metric.reporters": "Java class",
    "add.source.alias.to.metrics": "metrics",
    "auto.include.jmx.reporter": "metrics",
    "use.incremental.alter.configs": "topic configuration sync",
    "consumer.poll.timeout.ms": "poll timeout",
    "offset-syncs.topic.location": "offset syncs are on the target",
    "offset.lag.max": "offset syncs are written with each commit",
    "dedicated.mode.enable.internal.rest": "REST",
    **{f"listeners.https.ssl.{name}": "REST" for name in _HTTPS},
    "admin.listeners": "REST",
    "rest.host.name": "REST",
    "rest.port": "REST",
    "access.control.allow.methods": "REST",
    "access.control.allow.origin": "REST",
    "response.http.headers.config": "REST",
    "key.converter": "records are copied as bytes",
    "value.converter": "records are copied as bytes",
    "header.converter": "records are copied as bytes",
    "group.id": "Connect worker",
    "plugin.path": "Connect worker",
    "plugin.discovery": "Connect worker",
    "offset.flush.interval.ms": "Connect worker",
    "offset.flush.timeout.ms": "Connect worker",
    "heartbeat.interval.ms": "Connect worker",
    "rebalance.timeout.ms": "Connect worker",
    "scheduled.rebalance.max.delay.ms": "Connect worker",
    "connect.protocol": "Connect worker",
    "task.shutdown.graceful.timeout.ms": "Connect worker; here it is shutdown.timeout.ms",
    "worker.sync.timeout.ms": "Connect worker",
    "worker.unsync.backoff.ms": "Connect worker",
    "metrics.num.samples": "metrics",
    "metrics.recording.level": "metrics",
    "metrics.sample.window.ms": "metrics",
    "connector.client.config.override.policy": "Connect worker",
    "exactly.once.support": "exactly once needs no such line",
    "offsets.storage.topic": "Connect worker",
    "internal.topics.automatic.creation.enable": "Connect worker",
}
"""Key to what it configures, or to the reason why it has no effect."""

PREFIXES: dict[str, str] = {
    "config.storage.": "Connect worker",
    "offset.storage.": "Connect worker",
    "status.storage.": "Connect worker",
    "topic.creation.": "Connect worker",
    "topic.tracking.": "Connect worker",
    "inter.worker.": "Connect worker",
    "key.converter.": "records are copied as bytes",
    "value.converter.": "records are copied as bytes",
    "header.converter.": "records are copied as bytes",
    "admin.listeners.https.": "REST",
    "rest.advertised.": "REST",
    "rest.extension.": "REST",
    "metrics.context.": "metrics",
    "offset-syncs-": "offset syncs",
}
"""The same for families of keys, by prefix."""

RENAMED: dict[str, str] = {
    "topic.blacklist": "topics.exclude",
    "topic.whitelist": "topics",
    "topics.regex": "topics",
    "topic.regex": "topics",
    "group.blacklist": "groups.exclude",
    "group.whitelist": "groups",
    "topics.blacklist": "topics.exclude",
    "topics.whitelist": "topics",
    "groups.blacklist": "groups.exclude",
    "groups.whitelist": "groups",
    "config.properties.blacklist": "config.properties.exclude",
}
"""Old key, or one of another tool, to its current name. MirrorMaker 2 knows none since 4.0."""


def purpose(name: str) -> str | None:
    """Return what an accepted key configures; None if the key is unknown."""
    if name in NAMES:
        return NAMES[name]
    return next((text for prefix, text in PREFIXES.items() if name.startswith(prefix)), None)
