"""Settings for the consumer groups of a flow's source."""

from dataclasses import dataclass
from typing import Annotated

from eos_mirror.settings.key import Key
from eos_mirror.settings.values import Boolean, CountOrBrokerDefault, Patterns, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Checkpoints, and group offsets on the target. Patterns match whole names."""

    include: Annotated[
        Patterns,
        Key("groups", ".*", "Source groups to emit checkpoints for; patterns match whole names."),
    ]
    exclude: Annotated[
        Patterns,
        Key(
            "groups.exclude",
            "console-consumer-.*, connect-.*, __.*",
            "Source groups to exclude; takes precedence over `groups`.",
        ),
    ]
    refresh: Annotated[
        Boolean, Key("refresh.groups.enabled", "true", "Check for new groups while running.")
    ]
    refresh_interval: Annotated[
        Seconds, Key("refresh.groups.interval.seconds", "600", "How often to check.")
    ]
    emit_checkpoints: Annotated[
        Boolean,
        Key(
            "emit.checkpoints.enabled",
            "true",
            "Translate committed offsets of groups and write them to `A.checkpoints.internal`.",
        ),
    ]
    emit_interval: Annotated[
        Seconds, Key("emit.checkpoints.interval.seconds", "60", "How often to emit checkpoints.")
    ]
    replication_factor: Annotated[
        CountOrBrokerDefault,
        Key(
            "checkpoints.topic.replication.factor",
            "3",
            "Replicas of the checkpoints topic; -1: broker's default.",
        ),
    ]
    emit_syncs: Annotated[
        Boolean,
        Key(
            "emit.offset-syncs.enabled",
            "true",
            "At least once: write offset pairs to `mm2-offset-syncs.A.internal` on the target; "
            "checkpoints need them.",
        ),
    ]
    syncs_replication_factor: Annotated[
        CountOrBrokerDefault,
        Key(
            "offset-syncs.topic.replication.factor",
            "3",
            "Replicas of the offset-syncs topic; -1: broker's default.",
        ),
    ]
    sync_offsets: Annotated[
        Boolean,
        Key(
            "sync.group.offsets.enabled",
            "false",
            "Advance the offsets of groups without members on the target to their checkpoints.",
        ),
    ]
    sync_interval: Annotated[
        Seconds,
        Key("sync.group.offsets.interval.seconds", "60", "How often to sync group offsets."),
    ]
    sync_on_commit: Annotated[
        Boolean,
        Key(
            "sync.group.offsets.on.commit",
            "true",
            "Also sync a group as soon as it commits on the source, if `__consumer_offsets` may "
            "be read there.",
        ),
    ]
