"""
Which configuration entries of a source topic its copy gets, and which of them it has to lose.

Source: Kafka's MirrorSourceConnector and DefaultConfigPropertyFilter (KIP-382, KIP-894).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from eos_mirror.core.filters import NameFilter

LIMIT: Final = "max.message.bytes"
POLICY: Final = "cleanup.policy"
COMPACT: Final = "compact"
IN_EFFECT: Final = frozenset({LIMIT, POLICY})
"""Copied even if the source topic has only the default: the records must fit and must be kept."""

OURS: Final = frozenset(
    {"message.timestamp.type", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"}
)
"""Set at creation and left alone: the source accepted the timestamps, so the copy has to."""


class Origin(Enum):
    """Where the value of an entry comes from."""

    TOPIC = "set for the topic"
    BROKERS = "set for the brokers, while they ran"
    FILE = "from the file of a broker"
    DEFAULT = "nobody set it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    One entry of a topic as a cluster describes it; what is read-only or secret is none.

    Attributes:
        value: In effect.
    """

    value: str
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFilter:
    """
    Attributes:
        names: Those of the entries that are synchronised.
        keeps_defaults: `use.defaults.from = source`: the copy gets what is default on the source,
            too; otherwise it gets the default of the target.
    """

    names: NameFilter
    keeps_defaults: bool

    def takes(self, name: str) -> bool:
        """Whether the entry is synchronised at all."""
        return name not in OURS and self.names.matches(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """
    Of one topic.

    Attributes:
        set: New values by name.
        delete: Names that go back to the default of the cluster.
    """

    set: Mapping[str, str] = field(default_factory=dict)
    delete: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.set or self.delete)


def initial_config(source: Mapping[str, Entry], rules: ConfigFilter) -> dict[str, str]:
    """Of a copy that is created, besides what is ours."""
    left_out = {Origin.FILE} if rules.keeps_defaults else {Origin.FILE, Origin.DEFAULT}
    return {
        name: entry.value
        for name, entry in source.items()
        if rules.takes(name) and (name in IN_EFFECT or entry.origin not in left_out)
    }


def config_changes(
    source: Mapping[str, Entry], target: Mapping[str, Entry], rules: ConfigFilter
) -> Changes:
    """
    What has to change on a copy that exists; nothing, if it is as it should be.

    What was set for the copy and is default on the source goes, whoever set it. A limit is never
    lowered: who raised it made room for records that are larger there, being compressed otherwise.
    """
    wanted = initial_config(source, rules)
    return Changes(
        set={
            name: value
            for name, value in wanted.items()
            if name not in target
            or (target[name].value != value and not _is_roomier(name, target[name].value, value))
        },
        delete=tuple(
            name
            for name, entry in sorted(target.items())
            if entry.origin is Origin.TOPIC
            and name not in wanted
            and name in source
            and source[name].origin is Origin.DEFAULT
            and rules.takes(name)
        ),
    )


def urgent_changes(changes: Changes, target: Mapping[str, Entry]) -> Changes:
    """
    Those of the changes of a copy without which it refuses records of its source topic.

    A larger limit, and the end of compaction: a compacted topic refuses records without a key.
    """
    wanted = dict(changes.set)
    compacted = POLICY in target and COMPACT in target[POLICY].value
    names = [LIMIT, POLICY] if compacted and COMPACT not in wanted.get(POLICY, "") else [LIMIT]
    return Changes(set={name: wanted[name] for name in names if name in wanted})


def _is_roomier(name: str, there: str, wanted: str) -> bool:
    return name == LIMIT and int(there) > int(wanted)
