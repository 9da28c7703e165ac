"""
Takeovers as a model: copies go from MirrorMaker 2 to a flow, and back.

One step is one request or one look. Between two steps, each of the three may stall for any time:
MirrorMaker 2, the command, and our task with its driver. The command may be killed and run again.

One partition has `RECORDS` records. Safe means: whenever records become visible, the visible ones
of the copy are 0, 1, 2, ... in order.
"""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from tests.model.search import Finding, Violation, search
from tests.model.takeover_variants import Variant

RECORDS = 3


class Worker(NamedTuple):
    """MirrorMaker 2: what the process of its task remembers."""

    stage: Literal["off", "starting", "initialised", "copying", "sent"] = "off"
    epoch: int = 0
    position: int = 0


class Task(NamedTuple):
    """Our task and its driver."""

    stage: Literal["off", "judged", "claimed", "copying", "sent", "stopped"] = "off"
    epoch: int = 0
    position: int = 0


class Command(NamedTuple):
    """`adopt`: the stage to come, and what it remembers."""

    stage: int = 0
    position: int = 0
    size: int = 0
    epoch: int = 0


class State(NamedTuple):
    """
    Both clusters and all processes.

    Attributes:
        copy: Visible records.
        pending: A record in an open transaction, and whose it is.
        writes: So many offsets the log has: records, also aborted ones, and markers.
        stored: Position of MirrorMaker 2.
        stopped: Its connector is stopped.
        mm2_epoch, our_epoch: Newest epochs: an older writer cannot commit.
        shadow: Our position; None if there is none.
        marked: Our position was handed over.
        handed_over: The flow is marked as handed over.
    """

    copy: tuple[int, ...] = ()
    pending: tuple[int, str] | None = None
    writes: int = 0
    stored: int = 0
    stopped: bool = False
    mm2_epoch: int = 0
    our_epoch: int = 0
    shadow: int | None = None
    marked: bool = False
    handed_over: bool = False
    worker: Worker = Worker()
    task: Task = Task()
    command: Command = Command()
    starts: int = 0
    kills: int = 0


Step = tuple[str, State]


def first_state(variant: Variant) -> State:
    """Return the start: one of the two copies, and the other one never did."""
    state = State(starts=variant.starts, kills=variant.kills)
    if variant.direction == "from mm2":
        return state
    return state._replace(shadow=0, stopped=True)


def steps(variant: Variant, state: State) -> Iterator[Step]:
    """Yield everything that may happen next."""
    yield from _worker_steps(variant, state)
    yield from _task_steps(state)
    yield from _command_steps(variant, state)


def _appended(state: State, record: int, owner: str) -> State:
    """Append a record in the transaction of its writer; `visible` for none."""
    state = state._replace(writes=state.writes + 1)
    if owner != "visible":
        return state._replace(pending=(record, owner))
    return _checked(state._replace(copy=(*state.copy, record)))


def _checked(state: State) -> State:
    if state.copy != tuple(range(len(state.copy))):
        raise Violation(f"the copy has {list(state.copy)}")
    return state


def _committed(state: State, record: int) -> State:
    state = state._replace(writes=state.writes + 1, pending=None)
    return _checked(state._replace(copy=(*state.copy, record)))


def _without_pending(state: State, owner: str) -> State:
    """Abort what a writer has open."""
    mine = state.pending is not None and state.pending[1] == owner
    return state._replace(writes=state.writes + 1, pending=None) if mine else state


def _worker_steps(variant: Variant, state: State) -> Iterator[Step]:
    worker = state.worker
    off = state._replace(worker=Worker())
    if worker.stage == "off":
        if state.starts and not state.stopped:
            begun = state._replace(starts=state.starts - 1)
            begun = begun._replace(worker=Worker("starting"))
            yield "a worker starts", begun if variant.torn_start else _initialised(variant, begun)
        return
    if not variant.clean or worker.stage != "copying" or state.stored == worker.position:
        yield "MirrorMaker 2 ends", off
    if worker.stage == "starting":
        yield "its task initialises its id", _initialised(variant, state)
    elif worker.stage == "initialised":
        copying = Worker("copying", worker.epoch, state.stored)
        yield "it reads its position", state._replace(worker=copying)
    elif variant.exactly_once:
        yield from _worker_transaction(state, off)
    else:
        yield from _worker_plain(state)


def _initialised(variant: Variant, state: State) -> State:
    if not variant.exactly_once:
        return state._replace(worker=Worker("initialised"))
    epoch = state.mm2_epoch + 1
    state = _without_pending(state, "mm2")._replace(mm2_epoch=epoch)
    return state._replace(worker=Worker("initialised", epoch))


def _worker_transaction(state: State, off: State) -> Iterator[Step]:
    worker = state.worker
    if worker.epoch != state.mm2_epoch:
        yield "MirrorMaker 2 is fenced", off
    elif worker.stage == "copying" and worker.position < RECORDS and state.pending is None:
        sent = _appended(state, worker.position, "mm2")
        yield "MirrorMaker 2 sends", sent._replace(worker=worker._replace(stage="sent"))
    elif worker.stage == "sent":
        done = _committed(state, worker.position)._replace(stored=worker.position + 1)
        copying = Worker("copying", worker.epoch, worker.position + 1)
        yield "MirrorMaker 2 commits", done._replace(worker=copying)


def _worker_plain(state: State) -> Iterator[Step]:
    worker = state.worker
    if worker.position < RECORDS:
        sent = _appended(state, worker.position, "visible")
        copying = worker._replace(position=worker.position + 1)
        yield "MirrorMaker 2 writes", sent._replace(worker=copying)
    if state.stored < worker.position:
        yield "MirrorMaker 2 stores its position", state._replace(stored=worker.position)


def _task_steps(state: State) -> Iterator[Step]:
    task = state.task
    if task.stage == "off":
        if state.shadow is not None and not state.handed_over:
            yield "a driver may start", state._replace(task=Task("judged"))
    elif task.stage == "judged":
        epoch = state.our_epoch + 1
        claimed = _without_pending(state, "ours")._replace(our_epoch=epoch)
        yield "our task claims", claimed._replace(task=Task("claimed", epoch))
    elif task.stage == "claimed" and state.shadow is not None:
        known = Task("stopped" if state.marked else "copying", task.epoch, state.shadow)
        yield "our task reads its position", state._replace(task=known)
    elif task.stage in ("copying", "sent"):
        yield from _task_transaction(state)


def _task_transaction(state: State) -> Iterator[Step]:
    task = state.task
    if task.epoch != state.our_epoch:
        yield "our task is fenced", state._replace(task=Task())
    elif task.stage == "copying" and task.position < RECORDS and state.pending is None:
        sent = _appended(state, task.position, "ours")
        yield "our task sends", sent._replace(task=task._replace(stage="sent"))
    elif task.stage == "sent":
        done = _committed(state, task.position)._replace(shadow=task.position + 1, marked=False)
        copying = Task("copying", task.epoch, task.position + 1)
        yield "our task commits", done._replace(task=copying)


def _command_steps(variant: Variant, state: State) -> Iterator[Step]:
    command = state.command
    stage = variant.stages[command.stage]
    if command.stage and state.kills:
        killed = state._replace(command=Command(), kills=state.kills - 1)
        yield f"the command is killed before: {stage}", killed
    if stage == "done":
        if variant.direction == "to mm2" and state.kills:
            again = state._replace(command=Command(), kills=state.kills - 1)
            yield "the command is run again", again
        return
    after = STAGES[stage](variant, state)
    if after is not None:
        if after.command.stage == command.stage:
            onward = after.command._replace(stage=command.stage + 1)
            after = after._replace(command=onward)
        yield f"the command: {stage}", after


def _again(state: State) -> State:
    """End the command: it is run again from its first stage."""
    return state._replace(command=Command(stage=-1))


def _members(variant: Variant, state: State) -> State | None:
    """Wait until MirrorMaker 2 is gone, as far as its group shows."""
    if variant.direction == "to mm2":
        was_done = state.handed_over and not state.stopped
        if was_done and variant.looks_back:
            return state._replace(command=Command(stage=len(variant.stages) - 1))
    elif state.shadow is not None:
        return state._replace(command=Command(stage=len(variant.stages) - 1))
    is_seen = state.worker.stage != "off" and not variant.suspended
    return None if is_seen else state


def _members_again(variant: Variant, state: State) -> State:
    if state.worker.stage == "off" or variant.suspended:
        return state
    return _again(state._replace(stopped=False))


def _fence(variant: Variant, state: State) -> State:
    if not variant.exactly_once:
        return state
    return _without_pending(state, "mm2")._replace(mm2_epoch=state.mm2_epoch + 1)


def _find(variant: Variant, state: State) -> State:
    position = state.stored if variant.from_stored else len(state.copy)
    found = state.command._replace(position=position, size=state.writes)
    return state._replace(command=found)


def _stop(_: Variant, state: State) -> State:
    return state._replace(stopped=True)


def _growth(_: Variant, state: State) -> State:
    if state.writes == state.command.size:
        return state
    return _again(state._replace(stopped=False))


def _commit(_: Variant, state: State) -> State:
    epoch = state.our_epoch + 1
    state = _without_pending(state, "ours")._replace(our_epoch=epoch, marked=False)
    return state._replace(shadow=state.command.position)


def _note(variant: Variant, state: State) -> State:
    return state._replace(handed_over=variant.direction == "to mm2")


def _claim(_: Variant, state: State) -> State:
    epoch = state.our_epoch + 1
    claimed = state.command._replace(epoch=epoch)
    return _without_pending(state, "ours")._replace(our_epoch=epoch, command=claimed)


def _read(_: Variant, state: State) -> State:
    return state._replace(command=state.command._replace(position=state.shadow or 0))


def _mark(variant: Variant, state: State) -> State:
    if "claim" in variant.stages and state.command.epoch != state.our_epoch:
        return _again(state)  # another one claimed: the transaction is fenced
    return state._replace(marked=True)


def _store(_: Variant, state: State) -> State:
    return state._replace(stored=state.command.position)


def _start(_: Variant, state: State) -> State:
    return state._replace(stopped=False)


STAGES: dict[str, Callable[[Variant, State], State | None]] = {
    "members": _members,
    "members again": _members_again,
    "fence": _fence,
    "find": _find,
    "stop": _stop,
    "fence again": _fence,
    "growth": _growth,
    "commit": _commit,
    "note": _note,
    "claim": _claim,
    "read": _read,
    "mark": _mark,
    "store": _store,
    "start": _start,
}


def explore(variant: Variant) -> Finding:
    """Visit every state that can be reached, or stop at the first violation."""
    return search(
        first_state(variant),
        lambda state: steps(variant, state),
        lambda state: _is_complete(variant, state),
    )


def _is_complete(variant: Variant, state: State) -> bool:
    if variant.direction == "to mm2":
        return state.handed_over and state.stored == RECORDS
    return state.shadow == RECORDS
