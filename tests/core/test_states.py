"""The state of a flow follows from facts."""

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.states import FlowFacts

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
    counts = {"mirroring": 1, "starting": 0, "waiting": 1, "failed": 1, "refused": 1}
    assert facts.counts() == counts
