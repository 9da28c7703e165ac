"""The states of partitions and flows follow from facts."""

from dataclasses import replace

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.states import (
    Fault,
    FlowFacts,
    PartitionFacts,
    State,
    condition_of,
    counted_states,
    flow_state,
)

ONE, TWO, THREE = (TopicPartition("orders", p) for p in range(3))


def test_a_flow_is_ready_if_its_tasks_own_every_partition() -> None:
    """A flow without topics has nothing to wait for."""
    assert FlowFacts(planned=[ONE, TWO], owned=2).is_ready
    assert FlowFacts(planned=[]).is_ready


@pytest.mark.parametrize(
    "facts",
    [
        FlowFacts(planned=[ONE, TWO], owned=1, failed={TWO: "too large"}),
        FlowFacts(planned=[ONE, TWO], owned=1, waiting={TWO: "no leader"}),
        FlowFacts(planned=[ONE], owned=1, refused={"odd": "its copy is not ours"}),
        FlowFacts(planned=[ONE], owned=1, ended={"task 1": "not authorized"}),
    ],
    ids=["failed", "waiting", "refused", "ended"],
)
def test_a_flow_of_which_something_is_not_mirrored_is_not_ready(facts: FlowFacts) -> None:
    """It is not starting either: this will not change soon."""
    assert (facts.is_ready, facts.is_starting) == (False, False)
    assert len(facts.obstacles()) == 1


@pytest.mark.parametrize(
    "facts",
    [FlowFacts(planned=[ONE, TWO], owned=1), FlowFacts(planned=[], silent_tasks=1)],
    ids=["without a task", "without a report"],
)
def test_a_flow_is_starting_while_its_tasks_acquire_partitions(facts: FlowFacts) -> None:
    """Nothing is wrong with it yet."""
    assert (facts.is_ready, facts.is_starting, facts.obstacles()) == (False, True, {})


def test_obstacles_have_names_and_reasons_the_gravest_first() -> None:
    """What ended for good comes first, because nothing but a restart repairs it."""
    facts = FlowFacts(
        planned=[ONE, TWO, THREE],
        owned=1,
        failed={ONE: "too large"},
        waiting={TWO: "no leader"},
        refused={"odd": "taken"},
        ended={"task 1": "denied"},
    )

    assert list(facts.obstacles().items()) == [
        ("task 1", "ended: denied"),
        ("orders-0", "failed: too large"),
        ("orders-1", "waiting: no leader"),
        ("odd", "refused: taken"),
    ]
    counts = {"starting": 0, "waiting": 1, "failed": 1, "refused": 1}
    assert facts.counts() == {"mirroring": 1, "paused": 0, "stopped": 0, **counts}
    paused = replace(facts, paused=1).counts()
    assert (paused["mirroring"], paused["paused"]) == (0, 1), "a paused partition is owned, too"


def test_while_a_cluster_is_silent_partitions_wait_whatever_the_tasks_hold() -> None:
    """The tasks hold them until their own deadlines, and mirror nothing."""
    facts = FlowFacts(
        planned=[ONE, TWO, THREE],
        owned=1,
        failed={TWO: "too large"},
        waiting={THREE: "no leader"},
        outages={"B": "no answer"},
    )

    assert {state: n for state, n in facts.counts().items() if n} == {"waiting": 2, "failed": 1}


RUNNING = PartitionFacts(has_run=True, is_owned=True)
STOP = Fault(cause="RecordRefused", reason="too large")


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (RUNNING, State.MIRRORING),
        (replace(RUNNING, fault=STOP), State.FAILED),
        (replace(RUNNING, has_run=False, fault=STOP), State.FAILED),
        (replace(RUNNING, is_owned=False, fault=STOP, paused="by operator@host-7"), State.PAUSED),
        (replace(RUNNING, has_run=False), State.NOT_RUNNING),
        (replace(RUNNING, has_run=False, obstacle="no leader"), State.NOT_RUNNING),
        (replace(RUNNING, has_run=False, paused="by operator@host-7"), State.NOT_RUNNING),
        (replace(RUNNING, is_owned=False, stopped="by operator@host-7"), State.STOPPED),
        (replace(RUNNING, paused="by operator@host-7", obstacle="no leader"), State.PAUSED),
        (replace(RUNNING, obstacle="no leader", unseen="no answer"), State.WAITING),
        (replace(RUNNING, unseen="no answer"), State.UNKNOWN),
        (replace(RUNNING, has_run=None, hidden="denied"), State.UNKNOWN),
        (replace(RUNNING, is_owned=None, hidden="denied"), State.UNKNOWN),
        (replace(RUNNING, is_owned=False), State.STARTING),
        (replace(RUNNING, has_position=False), State.STARTING),
    ],
    ids=lambda value: value.value if isinstance(value, State) else "",
)
def test_a_partition_is_never_better_than_the_facts_prove(
    facts: PartitionFacts, state: State
) -> None:
    """Everything but `mirroring` has a reason."""
    condition = condition_of(facts)
    assert condition.state is state
    assert bool(condition.reason) is (state is not State.MIRRORING)
    assert condition.fault is facts.fault


@pytest.mark.parametrize(
    ("states", "state"),
    [
        ([State.MIRRORING, State.MIRRORING], State.MIRRORING),
        ([State.MIRRORING, State.STARTING], State.STARTING),
        ([State.WAITING, State.STARTING], State.WAITING),
        ([State.WAITING, State.UNKNOWN], State.UNKNOWN),
        ([State.PAUSED, State.MIRRORING], State.PAUSED),
        ([State.UNKNOWN, State.FAILED, State.MIRRORING], State.FAILED),
        ([], State.MIRRORING),
    ],
)
def test_a_flow_is_in_the_gravest_state_of_its_partitions(
    states: list[State], state: State
) -> None:
    """`counted_states` lists them in the same order."""
    assert flow_state(states, has_run=True, refused=False) is state
    if states:
        assert counted_states(states).split(", ")[0].endswith(state.value)


def test_a_flow_without_partitions_is_not_healthy_for_that() -> None:
    """Whether it runs, and whether topics are refused, is known all the same."""
    assert flow_state([], has_run=False, refused=False) is State.NOT_RUNNING
    assert flow_state([], has_run=None, refused=False) is State.UNKNOWN
    assert flow_state([], has_run=True, refused=True) is State.FAILED


def test_states_are_counted() -> None:
    """The gravest first."""
    states = [State.MIRRORING, State.FAILED, State.MIRRORING]
    assert counted_states(states) == "1 failed, 2 mirroring"
