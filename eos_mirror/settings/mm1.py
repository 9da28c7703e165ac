"""The flags and files of MirrorMaker 1 (kafka-mirror-maker.sh), converted to an mm2.properties."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from eos_mirror.core.flow import Flow
from eos_mirror.settings.draft import Draft, Entry
from eos_mirror.settings.properties import Property

FLOW: Final = Flow("source", "target")
"""MirrorMaker 1 has no aliases."""

SECURITY: Final = ("security.", "sasl.", "ssl.")
BOOTSTRAP: Final = "bootstrap.servers"
NOT_TAKEN: Final[Mapping[str, str]] = {
    "key.serializer": "records are copied as bytes",
    "value.serializer": "records are copied as bytes",
    "key.deserializer": "records are copied as bytes",
    "value.deserializer": "records are copied as bytes",
    "producer.type": "every record is acknowledged before its position is committed",
    "enable.auto.commit": "positions are committed with the records",
    "auto.commit.interval.ms": "positions are committed with the records",
    "zookeeper.connect": "the source is reached by bootstrap.servers",
}
"""Keys of the two files that have no counterpart, and why."""

PLAIN: Final[Mapping[str, str]] = {
    "replication.policy.class": "IdentityReplicationPolicy",
    "replication.factor": "-1",
    "heartbeats.replication.enabled": "false",
    "emit.checkpoints.enabled": "false",
    "sync.topic.configs.enabled": "false",
    "sync.topic.acls.enabled": "false",
}
"""What makes a flow do no more than MirrorMaker 1 did: it only copied records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """
    The command line of MirrorMaker 1; None: the flag was not given.

    Attributes:
        include: Of `--include`, or of `--whitelist` without it.
        unused: Flags without a counterpart that were given, with the reason.
    """

    include: str
    exclude: str | None = None
    streams: str | None = None
    handler: str | None = None
    handler_args: str | None = None
    listener: str | None = None
    listener_args: str | None = None
    abort_on_send_failure: bool = True
    unused: Mapping[str, str]


def convert_mm1(flags: Flags, consumer: Iterable[Property], producer: Iterable[Property]) -> Draft:
    """
    Convert a command line and the files that it names. They become one flow, `source->target`.

    Args:
        consumer: The properties of `--consumer.config`; `producer`: those of `--producer.config`.
    """
    draft = Draft(file="the flags")
    draft.first_steps = ""
    draft.clusters.update({FLOW.source: None, FLOW.target: None})
    draft.flows[FLOW] = "the flags"
    _add_flow(flags, draft)
    group = ""
    for line in consumer:
        if line.key == "group.id":
            group = line.value.strip()
            draft.refuse(_path(line), "a flow has its own group; see the first lines of the file")
        elif line.key == "auto.offset.reset":
            draft.refuse(_path(line), "start.position says where a new topic begins: earliest")
        else:
            _add_client(line, FLOW.source, "consumer", draft)
    for line in producer:
        _add_client(line, FLOW.target, "producer", draft)
    for flag, reason in flags.unused.items():
        draft.refuse(flag, reason)
    draft.remarks += _remarks(flags, group)
    return draft


def _add_flow(flags: Flags, draft: Draft) -> None:
    def add(name: str, value: str, path: str) -> None:
        draft.add(str(FLOW), name, Entry(value=value, path=path))

    add("enabled", "true", "the flags")
    add("topics", _pattern(flags.include), "--include")
    if flags.exclude is not None:
        add("topics.exclude", _pattern(flags.exclude), "--blacklist")
    for name, value in PLAIN.items():
        add(name, value, "the flags")
    if flags.streams is not None:
        add("tasks.max", flags.streams, "--num.streams")
    if flags.handler is not None:
        add("message.handler", flags.handler, "--message.handler")
        add("message.handler.args", flags.handler_args or "", "--message.handler.args")
    if flags.listener is not None:
        add("rebalance.listener", flags.listener, "--consumer.rebalance.listener")
        add("rebalance.listener.args", flags.listener_args or "", "--rebalance.listener.args")
    if not flags.abort_on_send_failure:
        add("errors.tolerance", "all", "--abort.on.send.failure")


def _pattern(text: str) -> str:
    """Return a pattern as MirrorMaker 1 reads it: commas separate alternatives."""
    return text.strip().strip("'\"").replace(" ", "").replace(",", "|")


def _add_client(line: Property, alias: str, role: str, draft: Draft) -> None:
    if line.key in NOT_TAKEN:
        draft.refuse(_path(line), NOT_TAKEN[line.key])
        return
    is_of_cluster = line.key == BOOTSTRAP or line.key.startswith(SECURITY)
    name = line.key if is_of_cluster else f"{role}.{line.key}"
    draft.add(alias, name, draft.entry(line.value, _path(line)))


def _path(line: Property) -> str:
    return f"{line.place} {line.key}"


def _remarks(flags: Flags, group: str) -> list[str]:
    where = f" --from group:{group}" if group else ""
    remarks = [
        "MirrorMaker 1 mirrored at least once; this flow mirrors exactly once.",
        "To continue its copies: stop it, and run",
        f"  eos-mirror adopt FILE '{FLOW}'{where or ' --from group:ID'} --plan",
        "A new topic begins at its first record; start.position = latest begins at its end.",
        "Records keep their partitions. MirrorMaker 1 chose them by key, so copies of topics with "
        "other partition counts or records without keys cannot be continued.",
    ]
    if not flags.abort_on_send_failure:
        remarks.append(
            "A record that the target refuses goes to a topic of its own (docs/quarantine.md); "
            "MirrorMaker 1 dropped it."
        )
    return remarks
