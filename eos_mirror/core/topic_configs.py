"""
Decides which configuration entries of a source topic are set on its copy, and which are deleted.

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
"""Set at creation and never changed: the source accepted the timestamps, so the copy has to."""


class Origin(Enum):
    """Where the value of an entry comes from."""

    TOPIC = "set for the topic"
    BROKERS = "set for the brokers, while they ran"
    FILE = "from the configuration file of a broker"
    DEFAULT = "not set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    One entry of a topic as a cluster describes it. Read-only and secret ones are excluded.

    Attributes:
        value: Value in effect.
    """

    value: str
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFilter:
    """
    Which entries are synced.

    Attributes:
        names: Filter of the names of entries.
        keeps_defaults: `use.defaults.from = source`: the copy also gets the defaults of the
            source; otherwise it gets those of the target.
    """

    names: NameFilter
    keeps_defaults: bool

    def takes(self, name: str) -> bool:
        """Return True if the entry is synced at all."""
        return name not in OURS and self.names.matches(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """
    Changes to one topic.

    Attributes:
        set: New values by name.
        delete: Names that are reset to the default of the cluster.
    """

    set: Mapping[str, str] = field(default_factory=dict)
    delete: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Return True if anything changes."""
        return bool(self.set or self.delete)


def initial_config(source: Mapping[str, Entry], rules: ConfigFilter) -> dict[str, str]:
    """Return the configuration of a new copy, without the entries of `OURS`."""
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
    Return what has to change on an existing copy.

    An entry that is set for the copy and default on the source is deleted, no matter who set it. A
    limit is never lowered: it may have been raised for records that are larger on the target,
    because they are compressed differently there.
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
    Return the changes without which a copy refuses records of its source topic.

    These are a larger limit, and the end of compaction: a compacted topic refuses records without
    a key.
    """
    wanted = dict(changes.set)
    compacted = POLICY in target and COMPACT in target[POLICY].value
    names = [LIMIT, POLICY] if compacted and COMPACT not in wanted.get(POLICY, "") else [LIMIT]
    return Changes(set={name: wanted[name] for name in names if name in wanted})


def _is_roomier(name: str, there: str, wanted: str) -> bool:
    return name == LIMIT and int(there) > int(wanted)
