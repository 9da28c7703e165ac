"""What happens to the tasks: reassignments, kills, markers, timeouts, late requests."""

from collections.abc import Iterator

from tests.model.brokers import arrive, write_marker
from tests.model.recovery import forget_process
from tests.model.state import (
    DECIDED,
    Budget,
    Model,
    State,
    Step,
    Txn,
    bury,
    live_claims,
    put,
    spend,
    with_task,
    with_txn,
)

IN_TRANSACTION = ("produce", "add-offsets", "commit-offsets", "end")


def misfortunes(model: Model, state: State) -> Iterator[Step]:
    """Yield every step that is not a task's own."""
    yield from _reassignments(model, state)
    yield from _kills(model, state)
    yield from _coordinators(state)
    yield from _late_arrivals(model, state)
    yield from _kicks(model, state)


def _move(model: Model, state: State, partition: int, task_id: int) -> State:
    """Assign a partition to a task, which notices some time later."""
    state = state._replace(source=put(state.source, partition, task_id))
    task = state.tasks[task_id]
    task = task._replace(inbox=task.inbox | {partition})
    if model.variant.generations in ("lanes", "late-lanes"):
        # The assignment is the membership on the target: its generation moves along.
        generation = state.generation + 1
        state = state._replace(generation=generation)
        task = task._replace(granted_generation=generation)
        if model.variant.generations == "late-lanes":
            task = task._replace(generation=generation)
    return with_task(state, task_id, task)


def _reassignments(model: Model, state: State) -> Iterator[Step]:
    for partition, owner in enumerate(state.source):
        for heir in range(model.variant.tasks):
            if heir == owner:
                continue
            forced = spend(state, Budget.FORCED)
            if forced:
                label = f"source: session of T{owner} expires, {partition} -> T{heir}"
                yield label, _move(model, forced, partition, heir)
            released = _released(model, state, partition)
            if released:
                label = f"source: T{owner} releases {partition} -> T{heir}"
                yield label, _move(model, released, partition, heir)


def _released(model: Model, state: State, partition: int) -> State | None:
    """Let the owner release a partition gracefully: claims end after its last transaction."""
    owner = state.source[partition]
    task, variant = state.tasks[owner], model.variant
    between = task.stage == "run"
    if partition not in task.own or not (between or variant.early_release):
        return None
    spent = spend(state, Budget.GRACEFUL)
    if not spent:
        return None
    if variant.claims:
        live = live_claims(spent, len(spent.claims), frozenset([partition]))
        spent = bury(spent, [k for k in live if spent.claims[k].txid == task.txid])
    if not between:
        return spent
    return with_task(spent, owner, task._replace(own=task.own - {partition}))


def _kills(model: Model, state: State) -> Iterator[Step]:
    for task_id, task in enumerate(state.tasks):
        spent = spend(state, Budget.CRASH)
        if spent and (task.own or task.acquiring or task.inbox):
            spent = forget_process(model, spent, task_id)
            for heir in range(model.variant.tasks):
                moved = spent
                for partition, owner in enumerate(state.source):
                    if owner == task_id:
                        moved = _move(model, moved, partition, heir)
                yield f"T{task_id} killed; its partitions -> T{heir}", moved


def _coordinators(state: State) -> Iterator[Step]:
    for txid, txn in enumerate(state.txns):
        if txn.status in DECIDED:
            for participant in txn.participants:
                marked = write_marker(state, txid, participant)
                yield f"X{txid} {txn.status}: marker -> {participant}", marked
        elif txn.status == "Ongoing":
            # An abandoned transaction is always timed out in the end.
            spent = spend(state, Budget.TIMEOUT) if _in_use(state, txn) else state
            if spent:
                aborted = txn._replace(epoch=txn.epoch + 1, status="PrepareAbort")
                yield f"coordinator times out X{txid}", with_txn(spent, txid, aborted)
        elif txn.pid is not None:
            expired = spend(state, Budget.EXPIRE)
            if expired:
                yield f"coordinator expires X{txid}", with_txn(expired, txid, Txn())


def _in_use(state: State, txn: Txn) -> bool:
    return any(task.pid == txn.pid and task.stage in IN_TRANSACTION for task in state.tasks)


def _late_arrivals(model: Model, state: State) -> Iterator[Step]:
    for index, late in enumerate(state.network):
        rest = state._replace(network=state.network[:index] + state.network[index + 1 :])
        after, _ = arrive(model, rest, late)
        yield f"late {late.kind} of X{late.txid} epoch {late.epoch} arrives", after
        if after != rest:
            yield f"late {late.kind} of X{late.txid} epoch {late.epoch} is lost", rest


def _kicks(model: Model, state: State) -> Iterator[Step]:
    if model.variant.generations != "source":
        return
    for task_id in range(model.variant.tasks):
        spent = spend(state, Budget.KICK)
        if spent and task_id in spent.members:
            members, generation = spent.members - {task_id}, spent.generation + 1
            yield (
                f"target group kicks T{task_id}",
                spent._replace(members=members, generation=generation),
            )
