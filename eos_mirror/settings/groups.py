"""What a flow does for the consumer groups of its source."""

from dataclasses import dataclass
from typing import Annotated

from eos_mirror.settings.key import Key
from eos_mirror.settings.values import Boolean, Count, Patterns, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Checkpoints, and offsets of groups on the target. Patterns match whole names."""

    include: Annotated[
        Patterns, Key("groups", ".*", "Groups of the source to follow; whole names.")
    ]
    exclude: Annotated[
        Patterns,
        Key(
            "groups.exclude",
            "console-consumer-.*, connect-.*, __.*",
            "Groups not to follow; beats `groups`.",
        ),
    ]
    refresh: Annotated[
        Boolean, Key("refresh.groups.enabled", "true", "Look for new groups while running.")
    ]
    refresh_interval: Annotated[
        Seconds, Key("refresh.groups.interval.seconds", "600", "How often to look.")
    ]
    emit_checkpoints: Annotated[
        Boolean,
        Key(
            "emit.checkpoints.enabled",
            "true",
            "Offsets of groups are translated and written to `A.checkpoints.internal`.",
        ),
    ]
    emit_interval: Annotated[Seconds, Key("emit.checkpoints.interval.seconds", "60", "How often.")]
    replication_factor: Annotated[
        Count, Key("checkpoints.topic.replication.factor", "3", "Of that topic.")
    ]
    emit_syncs: Annotated[
        Boolean,
        Key(
            "emit.offset-syncs.enabled",
            "true",
            "At least once: pairs of offsets are written to `mm2-offset-syncs.A.internal` on the "
            "target; checkpoints need them.",
        ),
    ]
    syncs_replication_factor: Annotated[
        Count, Key("offset-syncs.topic.replication.factor", "3", "Of that topic.")
    ]
    sync_offsets: Annotated[
        Boolean,
        Key(
            "sync.group.offsets.enabled",
            "false",
            "Groups without members on the target are moved forward to where they are.",
        ),
    ]
    sync_interval: Annotated[
        Seconds, Key("sync.group.offsets.interval.seconds", "60", "How often.")
    ]
    sync_on_commit: Annotated[
        Boolean,
        Key(
            "sync.group.offsets.on.commit",
            "true",
            "Also at once for a group that commits on the source, if `__consumer_offsets` may be "
            "read there.",
        ),
    ]
