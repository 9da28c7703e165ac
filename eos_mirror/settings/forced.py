"""
Client settings that exactly once depends on.

They cannot have another value. A line with the forced value is accepted, because configurations of
MirrorMaker 2 often have one. So is a line that has no effect in MirrorMaker 2 either, with a note.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from eos_mirror.settings.translate import Translation


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """
    A setting whose value is fixed.

    Attributes:
        meant: Lower-case values that equal the fixed one; none if it is chosen at run time.
        fix: What to do instead.
        is_fault: Another value is a fault. If False, the value is replaced and a note is added:
            nothing that the configuration asks for is lost.
    """

    meant: tuple[str, ...] = ()
    fix: str = "exactly once depends on it; remove the line"
    is_fault: bool = True


_START = "is decided by start.position = earliest | latest | timestamp:...; write that instead"
_COMMITS = "no effect: only eos_mirror commits offsets"
_GROUP = "no effect: eos_mirror chooses it, one for each flow and task"
_CREATES_NOTHING = "no effect: a topic is never created because a client asks for it"
_STATIC = "no effect: tasks are static members of a cooperative-sticky classic group"

CONNECTION_RULES = {
    "bootstrap.servers": Forced(fix="set it for the cluster, as A.bootstrap.servers"),
    "allow.auto.create.topics": Forced(meant=("false",), fix=_CREATES_NOTHING, is_fault=False),
}
MEMBER_RULES = {
    "enable.auto.commit": Forced(meant=("false",), fix=_COMMITS, is_fault=False),
    "enable.auto.offset.store": Forced(meant=("false",)),
    "isolation.level": Forced(meant=("read_committed",)),
    "auto.offset.reset": Forced(meant=("error", "none", "earliest"), fix=_START),
    "group.id": Forced(fix=_GROUP, is_fault=False),
    "group.instance.id": Forced(fix=_GROUP, is_fault=False),
    "partition.assignment.strategy": Forced(
        meant=(
            "cooperative-sticky",
            "org.apache.kafka.clients.consumer.cooperativestickyassignor",
        ),
        fix=_STATIC,
        is_fault=False,
    ),
    "group.protocol": Forced(meant=("classic",), fix=_STATIC, is_fault=False),
    "enable.partition.eof": Forced(meant=("true",)),
    "check.crcs": Forced(meant=("true",)),
}
WRITER_RULES = {
    "transactional.id": Forced(fix="is new for every incarnation; remove the line"),
    "enable.idempotence": Forced(meant=("true",)),
    "acks": Forced(meant=("all",)),
    "delivery.report.only.error": Forced(meant=("false",)),
}
MAX_IN_FLIGHT = "max.in.flight.requests.per.connection"
MAX_IN_FLIGHT_IN_ORDER = 5
"""With more, an idempotent producer could reorder. Source: KIP-185, Kafka's ProducerConfig."""


def enforce_connection(translated: Translation) -> None:
    """Remove the settings that every client gets from its cluster."""
    _enforce(translated, CONNECTION_RULES)


def enforce_member(translated: Translation) -> None:
    """Remove the fixed settings of a source consumer; wrong values become faults."""
    _enforce(translated, CONNECTION_RULES | MEMBER_RULES)


def enforce_writer(translated: Translation) -> None:
    """Remove the fixed settings of the target producer; wrong values become faults."""
    _enforce(translated, CONNECTION_RULES | WRITER_RULES)
    in_flight = translated.config.get(MAX_IN_FLIGHT, "1")
    if not in_flight.isdecimal() or not 1 <= int(in_flight) <= MAX_IN_FLIGHT_IN_ORDER:
        translated.faults.append(
            f"{translated.intros[MAX_IN_FLIGHT]} = {in_flight}: "
            f"more than {MAX_IN_FLIGHT_IN_ORDER} could reorder records; remove the line"
        )


def _enforce(translated: Translation, rules: Mapping[str, Forced]) -> None:
    for name, rule in rules.items():
        value = translated.config.pop(name, None)
        if value is not None and value.lower() not in rule.meant:
            told = translated.faults if rule.is_fault else translated.notes
            told.append(f"{translated.intros[name]} = {value}: {rule.fix}")
