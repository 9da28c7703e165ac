"""
Migrations as a model: a source connector becomes exactly once while drivers change.

The source connector has one task, which nothing fences. Its driver is stopped, or killed: then the
task lives on until its lease ends. Two other drivers may both believe that they lead. Each takes
the copy over, and then runs a task that writes in transactions under a claim.

One step is one request or one look. Between two steps, everyone may stall for any time. Safe means:
the visible records of the copy are 0, 1, 2, ... in order.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from tests.model.search import Finding, Result, Violation, search

RECORDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """
    A migration, and the rule that it lacks.

    Attributes:
        expect: What the search must find.
        quiet: A driver waits until the task of a killed driver is gone.
        growth: The end of the copy is checked before the claim.
        growth_under_claim: It is checked again under the claim.
        marks_late: The source connector says that it stopped after its task has ended.
        matches: The copy is continued at its end, not at the stored position.
        drivers: So many drivers may take it over.
    """

    expect: Result = "safe"
    quiet: bool = True
    growth: bool = True
    growth_under_claim: bool = True
    marks_late: bool = True
    matches: bool = True
    drivers: int = 2


MIGRATE = Variant()
BROKEN = replace(MIGRATE, expect="violation")

VARIANTS = {
    "migrate": MIGRATE,
    "migrate-one-driver": replace(MIGRATE, drivers=1),
    "spare-growth": replace(MIGRATE, growth=False),
    "mut-migrate-no-quiet": replace(BROKEN, quiet=False, drivers=1),
    "mut-migrate-no-growth-under-claim": replace(BROKEN, growth_under_claim=False),
    "mut-migrate-marks-early": replace(BROKEN, marks_late=False, drivers=1),
    "mut-migrate-from-stored": replace(BROKEN, matches=False, drivers=1),
}


class Source(NamedTuple):
    """The task of the source connector, and what its driver does."""

    stage: Literal["copying", "stopping", "orphan", "gone"] = "copying"
    position: int = 0


class Driver(NamedTuple):
    """A driver that takes over, and then its task."""

    stage: Literal[
        "waiting", "judged", "found", "checked", "claimed", "adopted", "copying", "sent", "gone"
    ] = "waiting"
    position: int = 0
    size: int = 0
    epoch: int = 0


class State(NamedTuple):
    """
    Both clusters and all processes.

    Attributes:
        copy: Visible records.
        pending: Record and epoch of an open transaction.
        writes: Offsets of the log: records, aborted ones, and markers.
        stored: Position of the source connector.
        marked: The source connector said that its task has ended.
        epoch: Of the newest claim.
        shadow: Our position; None if there is none.
        is_sink: The mode is exactly once.
    """

    copy: tuple[int, ...] = ()
    pending: tuple[int, int] | None = None
    writes: int = 0
    stored: int = 0
    marked: bool = False
    epoch: int = 0
    shadow: int | None = None
    is_sink: bool = False
    source: Source = Source()
    drivers: tuple[Driver, ...] = ()


Step = tuple[str, State]
Become = Callable[..., State]
"""Returns a state in which a driver has other fields."""


def explore(variant: Variant) -> Finding:
    """Visit every state that can be reached, or stop at the first violation."""
    return search(
        State(drivers=(Driver(),) * variant.drivers),
        lambda state: steps(variant, state),
        lambda state: state.shadow == RECORDS,
    )


def steps(variant: Variant, state: State) -> Iterator[Step]:
    """Yield everything that may happen next."""
    yield from _source_steps(variant, state)
    for number in range(len(state.drivers)):
        yield from _driver_steps(variant, state, number)


def _visible(state: State, record: int) -> State:
    copy = (*state.copy, record)
    if copy != tuple(range(len(copy))):
        raise Violation(f"the copy has {list(copy)}")
    return state._replace(copy=copy, writes=state.writes + 1)


def _source_steps(variant: Variant, state: State) -> Iterator[Step]:
    source = state.source
    if source.stage == "gone":
        return
    if source.stage != "stopping" and source.position < RECORDS:
        after = _visible(state, source.position)
        moved = source._replace(position=source.position + 1)
        yield "the source connector writes", after._replace(source=moved)
    if state.stored < source.position:
        yield "it stores its position", state._replace(stored=source.position)
    if source.stage == "copying":
        killed = state._replace(source=source._replace(stage="orphan"))
        yield "its driver is killed", killed
        if variant.marks_late:
            stopping = state._replace(source=source._replace(stage="stopping"))
            yield "its driver stops it", stopping
        else:
            yield "its driver says that it has ended", killed._replace(marked=True)
    elif source.stage == "orphan":
        yield "its lease ends", state._replace(source=source._replace(stage="gone"))
    elif state.stored == source.position:
        gone = state._replace(source=source._replace(stage="gone"), marked=True)
        yield "it has ended, says its driver", gone


def _driver_steps(variant: Variant, state: State, number: int) -> Iterator[Step]:
    driver = state.drivers[number]

    def become(after: State, **changes: object) -> State:
        new = driver._replace(**changes)  # type: ignore[arg-type] # names of fields
        drivers = (*after.drivers[:number], new, *after.drivers[number + 1 :])
        return after._replace(drivers=drivers)

    name = f"driver {number}"
    if driver.stage == "waiting":
        yield from _waiting(variant, state, name, become)
    elif driver.stage == "judged":
        position = len(state.copy) if variant.matches else state.stored
        found = become(state, stage="found", position=position, size=state.writes)
        yield f"{name} finds the end of the copy", found
    elif driver.stage == "found":
        has_grown = variant.growth and state.writes != driver.size
        yield f"{name} looks again", become(state, stage="gone" if has_grown else "checked")
    elif driver.stage == "checked":
        aborted = state.writes + (state.pending is not None)
        claimed = state._replace(epoch=state.epoch + 1, pending=None, writes=aborted)
        yield f"{name} claims", become(claimed, stage="claimed", epoch=claimed.epoch)
    elif driver.stage == "adopted":
        noted = become(state._replace(is_sink=True), stage="checked", size=-1)
        yield f"{name} notes the mode, and starts its task", noted
    elif driver.stage == "claimed":
        yield from _after_claim(variant, state, driver, name, become)
    elif driver.stage in ("copying", "sent"):
        yield from _transactions(state, driver, name, become)


def _waiting(variant: Variant, state: State, name: str, become: Become) -> Iterator[Step]:
    leads = state.source.stage != "copying" or state.marked
    may = state.marked or state.source.stage == "gone" or not variant.quiet
    if state.is_sink:
        yield f"{name} finds the mode changed", become(state, stage="checked", size=-1)
    elif leads and may:
        yield f"{name} leads, and waited", become(state, stage="judged")


def _after_claim(
    variant: Variant, state: State, driver: Driver, name: str, become: Become
) -> Iterator[Step]:
    if driver.epoch != state.epoch:
        yield f"{name} is fenced", become(state, stage="gone")
    elif driver.size < 0:  # it takes nothing over: its task resumes
        yield (
            f"{name}: its task resumes",
            become(state, stage="copying", position=state.shadow or 0),
        )
    elif variant.growth_under_claim and state.writes != driver.size:
        yield f"{name} sees that the copy grew", become(state, stage="gone")
    else:
        adopted = state._replace(shadow=driver.position)
        yield f"{name} commits the positions", become(adopted, stage="adopted")


def _transactions(state: State, driver: Driver, name: str, become: Become) -> Iterator[Step]:
    if driver.epoch != state.epoch:
        yield f"{name}: its task is fenced", become(state, stage="gone")
    elif driver.stage == "copying" and driver.position < RECORDS and state.pending is None:
        sent = state._replace(pending=(driver.position, driver.epoch), writes=state.writes + 1)
        yield f"{name}: its task sends", become(sent, stage="sent")
    elif driver.stage == "sent":
        done = _visible(state._replace(pending=None), driver.position)
        moved = done._replace(shadow=driver.position + 1)
        onward = become(moved, stage="copying", position=driver.position + 1)
        yield f"{name}: its task commits", onward
