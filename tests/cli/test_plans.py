"""The plan of a flow, for a person and for a program."""

import json

from eos_mirror.cli.plans import SHOWN, plan_json, plan_text
from eos_mirror.core.flow import Flow
from eos_mirror.core.plan import FlowPlan, Route


def plan_of(count: int) -> FlowPlan:
    """Return a plan with this many topics to create, and one that is refused."""
    routes = tuple(
        Route(source_topic=f"t{n:02}", remote_topic=f"A.t{n:02}", partitions=2)
        for n in range(count)
    )
    routes += (Route(source_topic="odd", remote_topic="A.odd", partitions=1),)
    return FlowPlan(
        flow=Flow("A", "B"),
        routes=routes,
        to_create=routes,
        too_small=(),
        conflicts=(),
    ).refusing({"odd": "its copy is not ours"})


def test_a_person_sees_what_is_special() -> None:
    """Long lists are cut, with the number of what is not shown."""
    first, mirrored, created, refused = plan_text(plan_of(SHOWN + 2)).splitlines()

    assert first == "A->B: 22 topics, 44 partitions"
    assert mirrored.startswith("  to mirror: t00 -> A.t00, t01 -> A.t01, ")
    assert created.endswith(", A.t19, and 2 more")
    assert refused == "  not mirrored: A->B odd to A.odd: its copy is not ours"


def test_a_program_gets_everything() -> None:
    """One line for each flow."""
    (line,) = plan_json(plan_of(SHOWN + 2)).splitlines()
    found = json.loads(line)

    assert len(found["topics"]) == len(found["create"]) == SHOWN + 2
    assert found["partitions"] == 44
    assert found["refused"] == {"odd": "A->B odd to A.odd: its copy is not ours"}
