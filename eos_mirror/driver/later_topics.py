"""Finds out at a check which internal topics the target would refuse once they are needed."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from eos_mirror.core.policy import HEARTBEATS_TOPIC
from eos_mirror.core.side import Side
from eos_mirror.errors import MirrorError, TooFewBrokers
from eos_mirror.kafka.topics import Topics, TopicSpec
from eos_mirror.settings import clients
from eos_mirror.settings.heartbeats import HeartbeatSettings
from eos_mirror.settings.model import FlowSettings

CHECKPOINTS_KEY: Final = "checkpoints.topic.replication.factor"
SYNCS_KEY: Final = "offset-syncs.topic.replication.factor"
HEARTBEATS_KEY: Final = "heartbeats.topic.replication.factor"
INTERNAL_KEY: Final = "internal.topic.replication.factor"


class _Later(NamedTuple):
    """A topic that is created when something is written to it for the first time."""

    name: str
    replication_factor: int | None
    key: str


def flow_topics_refused(settings: FlowSettings, target: Topics) -> Iterator[str]:
    """
    Yield a line for each topic of a flow that would not be created. Writes nothing.

    Raises:
        TargetUnavailable: The target did not answer.
    """
    flow, internal = settings.flow, settings.internal_topic_replication_factor
    later = [_Later(flow.ledger_topic, internal, INTERNAL_KEY)]
    later.append(_Later(flow.desired_topic, internal, INTERNAL_KEY))
    if settings.groups.emit_checkpoints:
        of = clients.checkpoint_config(settings)
        later.append(_Later(of.topic, of.replication_factor, CHECKPOINTS_KEY))
    syncs = clients.syncs_of(settings)
    if syncs is not None:
        later.append(_Later(syncs.topic, syncs.replication_factor, SYNCS_KEY))
    yield from _refused(later, target, flow.target)


def heartbeats_refused(pair: HeartbeatSettings) -> Iterator[str]:
    """Yield a line if the heartbeats of a pair would not be created. As `flow_topics_refused`."""
    target = Topics(clients.heartbeat_admin(pair), side=Side.TARGET)
    later = [_Later(HEARTBEATS_TOPIC, pair.replication_factor, HEARTBEATS_KEY)]
    yield from _refused(later, target, pair.flow.target)


def _refused(later: list[_Later], target: Topics, alias: str) -> Iterator[str]:
    existing = target.existing([one.name for one in later])
    wanted = {one.name: one for one in later if one.name not in existing}
    specs = [
        TopicSpec(
            name=one.name,
            partitions=1,
            replication_factor=one.replication_factor,
            config={"cleanup.policy": "compact"},
        )
        for one in wanted.values()
    ]
    for name, refusal in target.create(specs, validate_only=True).items():
        yield f"{name} would not be created on {alias}: {refusal}. {_fix(refusal, wanted[name])}"


def _fix(refusal: MirrorError, one: _Later) -> str:
    if isinstance(refusal, TooFewBrokers):
        return f"Set {one.key} to at most the number of brokers"
    return "Mirroring does not depend on it"
