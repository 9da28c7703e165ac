"""Checks whether the coordinators of a flow can work, and says what has to be changed."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from eos_mirror.core.flow import Flow
from eos_mirror.core.plural import counted
from eos_mirror.core.side import Side
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.errors import RetriableError
from eos_mirror.kafka.coordinators import (
    GROUPS,
    MIN_IN_SYNC,
    TRANSACTIONS,
    CoordinatorState,
    CoordinatorTopic,
    partition_of,
    read_state,
    refusal_to_create,
)
from eos_mirror.kafka.deadline import ANSWER, Deadline
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.topics import Topics
from eos_mirror.settings.model import FlowSettings

UNAVAILABLE = "kafka-topics.sh --describe --unavailable-partitions"
UNDER_MIN_ISR = "kafka-topics.sh --describe --under-min-isr-partitions"


class Asked(NamedTuple):
    """Coordinators that a flow needs."""

    side: Side
    topic: CoordinatorTopic


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinators:
    """
    What is known of the coordinators of a flow.

    Attributes:
        missing: Those whose topic does not exist yet. The first request to one creates it.
        faults: One line for each that can never work with the settings of the brokers.
        outages: One line for each that cannot work now.
    """

    missing: frozenset[Asked]
    faults: tuple[str, ...]
    outages: tuple[str, ...]


def check_coordinators(clusters: FlowClusters, settings: FlowSettings) -> Coordinators:
    """
    Check the topics of the coordinators that a flow needs; nothing creates them.

    What is over within 10 s, such as an election, is no outage.

    Raises:
        SourceUnavailable, TargetUnavailable: The cluster does not answer.
    """
    needed = [Asked(Side.TARGET, GROUPS)]
    if not settings.is_source_connector:
        needed.append(Asked(Side.SOURCE, GROUPS))
    if settings.exactly_once:
        needed.append(Asked(Side.TARGET, TRANSACTIONS))
    looks: list[Coordinators] = []

    def until_they_work(_: Deadline) -> None:
        looks.append(_look(clusters, needed))
        if looks[-1].faults or looks[-1].outages:
            raise RetriableError("some coordinators cannot work")

    with suppress(RetriableError):
        retrying(until_they_work, within=ANSWER)
    return looks[-1]


def _look(clusters: FlowClusters, needed: Sequence[Asked]) -> Coordinators:
    missing: set[Asked] = set()
    faults: list[str] = []
    outages: list[str] = []
    for one in needed:
        topics = clusters.source_topics if one.side is Side.SOURCE else clusters.target_topics
        state = read_state(topics, one.topic, side=one.side)
        if state.is_missing:
            missing.add(one)
            faults += _refusal(clusters.flow, one, topics)
        else:
            outages += _outages(clusters.flow, one, state)
    return Coordinators(missing=frozenset(missing), faults=tuple(faults), outages=tuple(outages))


def _refusal(flow: Flow, asked: Asked, topics: Topics) -> Iterator[str]:
    why = refusal_to_create(topics, asked.topic, side=asked.side)
    if why:
        yield (
            f"{flow}: {_where(flow, asked)} does not exist and cannot be used: {why}. So "
            f"{_lost(asked)}. Start more brokers, or lower the setting on every broker and restart "
            f"them."
        )


def _outages(flow: Flow, asked: Asked, state: CoordinatorState) -> Iterator[str]:
    where = _where(flow, asked)
    numbers = _numbers(flow, asked, len(state.partitions))
    silent, short = state.leaderless(numbers), state.too_few_in_sync(numbers)
    if silent:
        yield (
            f"{flow}: {where} has no leader for {_named(silent)}, so {_lost(asked)}. Start the "
            f"brokers that have it; {UNAVAILABLE} names them."
        )
    if short:
        in_sync = min(state.partitions[number].in_sync for number in short)
        yield (
            f"{flow}: {where} has only {counted(in_sync, 'replica')} in sync for {_named(short)}, "
            f"fewer than its {MIN_IN_SYNC}={state.min_in_sync}, so {_lost(asked)}. Start the "
            f"brokers that are down ({UNDER_MIN_ISR} names the replicas), or lower {MIN_IN_SYNC} "
            f"of the topic."
        )


def _numbers(flow: Flow, asked: Asked, count: int) -> set[int] | None:
    """Return the partitions of the flow's groups; None, which is all, for transactional ids."""
    if asked.topic is TRANSACTIONS or not count:
        return None  # each incarnation has another id
    on_target = (flow.shadow_group, flow.drivers_group)
    groups = (flow.source_group,) if asked.side is Side.SOURCE else on_target
    return {partition_of(group, count) for group in groups}


def _where(flow: Flow, asked: Asked) -> str:
    return f"{asked.topic.name} on {flow.source if asked.side is Side.SOURCE else flow.target}"


def _lost(asked: Asked) -> str:
    if asked.topic is TRANSACTIONS:
        return "no transaction can begin"
    return "the groups of the flow have no coordinator"


def _named(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"partition {numbers[0]}"
    return f"{len(numbers)} partitions, such as {numbers[0]}"
