"""
The state of partitions and flows: what is mirrored, and what keeps the rest. Pure functions.

`FlowFacts` is what a run knows of its flow. `PartitionFacts` is what the clusters alone show.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from itertools import chain

from eos_mirror.core.records import TopicPartition


class State(Enum):
    """State of a partition, or of a flow."""

    MIRRORING = "mirroring"
    """A task reads it and writes its copy. It may stand at its end."""
    STARTING = "starting"
    """A task acquires it, or will soon."""
    WAITING = "waiting"
    """It is mirrored as soon as something outside of the run has changed."""
    PAUSED = "paused"
    """An operator has paused it. A task keeps it."""
    STOPPED = "stopped"
    """An operator has stopped it. No task holds it."""
    UNKNOWN = "unknown"
    FAILED = "failed"
    """It is not mirrored, with a cause."""
    NOT_RUNNING = "not running"
    """No run mirrors the flow."""


GRAVEST = (
    State.NOT_RUNNING,
    State.FAILED,
    State.UNKNOWN,
    State.WAITING,
    State.STOPPED,
    State.PAUSED,
    State.STARTING,
    State.MIRRORING,
)
"""The state of a flow is the first one of these that one of its partitions is in."""

ORDERED = frozenset({State.STOPPED, State.PAUSED})
"""States that an operator wants."""

WRONG = frozenset({State.NOT_RUNNING, State.FAILED, State.UNKNOWN})
"""States that a person has to look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """
    Why a partition is not mirrored.

    Attributes:
        cause: Class of the error.
        since: When it stopped; None if that is not known.
    """

    cause: str
    reason: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """
    What can be known of a partition from outside of the run.

    Attributes:
        has_run: Whether a run mirrors the flow; None if that cannot be found out.
        is_owned: Whether a task has the partition; None if that cannot be found out.
        hidden: Why one of the two cannot be found out.
        fault: What stopped it; None if nothing did.
        stopped: Which operator stopped it, when and why; empty if none did.
        paused: Which operator paused it, when and why; empty if none did.
        obstacle: What it waits for; empty if nothing is known.
        unseen: Why a cluster does not say where the partition ends; empty if it does.
        has_position: False if there are records, and no position was committed yet.
    """

    has_run: bool | None
    is_owned: bool | None
    hidden: str = ""
    fault: Fault | None = None
    stopped: str = ""
    paused: str = ""
    obstacle: str = ""
    unseen: str = ""
    has_position: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The state of a partition, with the reason where it is not mirrored."""

    state: State
    reason: str = ""
    fault: Fault | None = None


def condition_of(facts: PartitionFacts) -> Condition:
    """
    Return the state that follows from facts. A partition is never better than they prove.

    What stopped a partition that an operator has paused or stopped matters only when it continues.
    """
    if facts.fault is not None and not (facts.stopped or facts.paused):
        return Condition(state=State.FAILED, reason=facts.fault.reason, fault=facts.fault)
    is_hidden = facts.has_run is None or facts.is_owned is None
    for applies, state, reason in (
        (facts.has_run is False, State.NOT_RUNNING, "no run mirrors the flow"),
        (bool(facts.stopped), State.STOPPED, facts.stopped),
        (bool(facts.paused), State.PAUSED, facts.paused),
        (bool(facts.obstacle), State.WAITING, facts.obstacle),
        (bool(facts.unseen), State.UNKNOWN, facts.unseen),
        (is_hidden, State.UNKNOWN, facts.hidden),
        (not facts.is_owned, State.STARTING, "no task has it yet"),
        (not facts.has_position, State.STARTING, "no position was committed yet"),
    ):
        if applies:
            return Condition(state=state, reason=reason, fault=facts.fault)
    return Condition(state=State.MIRRORING)


def flow_state(states: Iterable[State], *, has_run: bool | None, refused: bool) -> State:
    """
    Return the state of a flow.

    Args:
        states: Of its partitions.
        has_run: As in `PartitionFacts`; it decides for a flow without partitions.
        refused: True if topics are refused.
    """
    found = set(states)
    if has_run is False:
        found.add(State.NOT_RUNNING)
    if has_run is None:
        found.add(State.UNKNOWN)
    if refused:
        found.add(State.FAILED)
    return next((state for state in GRAVEST if state in found), State.MIRRORING)


def counted_states(states: Iterable[State]) -> str:
    """Return how many partitions are in which state, the gravest first: `1 failed, 3 mirroring`."""
    counts = Counter(states)
    return ", ".join(f"{counts[state]} {state.value}" for state in GRAVEST if counts[state])


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFacts:
    """
    What a run knows of one flow.

    Attributes:
        planned: Source partitions that it has to mirror; only their number counts.
        owned: Number of partitions that its tasks mirror. One at its end counts.
        paused: Number of partitions that operators have paused; tasks own them.
        stopped: Number of partitions that operators have stopped; no task owns them.
        failed: Partitions that stopped, with the reason.
        waiting: Partitions that cannot be acquired now, with the reason.
        refused: Source topics that are not mirrored, with the reason. They are not planned.
        outages: Why clusters do not answer, by alias.
        ended: Why tasks, or the whole flow, ended for good, by their name.
        silent_tasks: Number of other tasks that have not reported yet.
    """

    planned: Collection[TopicPartition]
    owned: int = 0
    paused: int = 0
    stopped: int = 0
    failed: Mapping[TopicPartition, str] = field(default_factory=dict)
    waiting: Mapping[TopicPartition, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    outages: Mapping[str, str] = field(default_factory=dict)
    ended: Mapping[str, str] = field(default_factory=dict)
    silent_tasks: int = 0

    @property
    def starting(self) -> int:
        """Return the number of partitions that no task has yet, or that one is acquiring."""
        known = self.owned + self.stopped + len(self.failed.keys() | self.waiting.keys())
        return max(0, len(self.planned) - known)

    @property
    def is_starting(self) -> bool:
        """Return True if the state of some partitions will be known soon."""
        is_short = self.starting > 0 or self.silent_tasks > 0
        return is_short and not (self.ended or self.outages)

    @property
    def is_ready(self) -> bool:
        """Return True if everything that the configuration selects is mirrored."""
        return not (self.starting or self.silent_tasks or self.obstacles())

    def obstacles(self) -> dict[str, str]:
        """
        Return why something is not mirrored: by partition, refused topic, cluster, task or flow.

        Partitions that are only starting are not among them.
        """
        partitions = chain(
            ((str(p), f"failed: {reason}") for p, reason in sorted(self.failed.items())),
            ((str(p), f"waiting: {reason}") for p, reason in sorted(self.waiting.items())),
        )
        return {
            **{name: f"ended: {reason}" for name, reason in self.ended.items()},
            **{f"cluster {a}": f"does not answer: {why}" for a, why in self.outages.items()},
            **dict(partitions),
            **{topic: f"refused: {reason}" for topic, reason in sorted(self.refused.items())},
        }

    def counts(self) -> dict[str, int]:
        """
        Return how many partitions are in each state, and how many topics are refused.

        While a cluster does not answer, the others wait for it, whatever the tasks still hold.
        """
        mirroring, starting, waiting = (
            max(0, self.owned - self.paused),
            self.starting,
            len(self.waiting),
        )
        if self.outages:
            others = self.paused + self.stopped + len(self.failed)
            mirroring, starting, waiting = 0, 0, max(0, len(self.planned) - others)
        return {
            State.MIRRORING.value: mirroring,
            State.PAUSED.value: self.paused,
            State.STOPPED.value: self.stopped,
            State.STARTING.value: starting,
            State.WAITING.value: waiting,
            State.FAILED.value: len(self.failed),
            "refused": len(self.refused),
        }
