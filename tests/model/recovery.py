"""
What a task does when it cannot continue: re-acquire, exit, or take the light step.
"""

from tests.model.brokers import Producer, Refusal, init_producer_id
from tests.model.state import (
    NO_CLAIM,
    NO_ID,
    NO_PROCESS,
    Budget,
    Model,
    State,
    Step,
    blank_task,
    put,
    spend,
    with_task,
)


def give_up(model: Model, state: State, task_id: int) -> State:
    """React to an error, or to a later claim of another task."""
    if model.variant.ids == "incarnation":
        return exit_process(model, state, task_id)
    return _reacquire(model, state, task_id)


def _reacquire(model: Model, state: State, task_id: int) -> State:
    """Forget the producer, keep what the source group still says is ours, start over."""
    task = state.tasks[task_id]
    mine = frozenset(p for p in task.own | task.acquiring if state.source[p] == task_id)
    task = task._replace(
        stage="init" if mine else "idle",
        own=frozenset(),
        acquiring=mine,
        pid=None,
        epoch=-1,
        claim=NO_CLAIM if model.variant.reclaim else task.claim,
        fence_list=(),
        voids=(),
        batch=(),
        unsent=(),
        suspicious=False,
    )
    return with_task(state, task_id, task)


def forget_process(model: Model, state: State, task_id: int) -> State:
    """Forget a process: nothing remembers which claims were its own."""
    claims = tuple(
        claim._replace(process=NO_PROCESS) if claim.process == task_id else claim
        for claim in state.claims
    )
    return with_task(state._replace(claims=claims), task_id, blank_task(model.variant, task_id))


def exit_process(model: Model, state: State, task_id: int) -> State:
    """
    Exit the process (crash-only): its successor has a new transactional id and no memory.

    The successor is a static member: the source group assigns it what it says is the slot's.
    """
    state = forget_process(model, state, task_id)
    handed = frozenset(p for p, owner in enumerate(state.source) if owner == task_id)
    return with_task(state, task_id, state.tasks[task_id]._replace(inbox=handed))


def recover_from_suspicion(model: Model, state: State, task_id: int) -> Step:
    """React to a commit that is good, but may have a late duplicate."""
    if not model.variant.light:
        return "suspicious commit: start over", give_up(model, state, task_id)
    return "suspicious commit: light step", new_incarnation(model, state, task_id)


def new_incarnation(model: Model, state: State, task_id: int) -> State:
    """Begin the light step: a new id for all held partitions, even if others own them now."""
    task = state.tasks[task_id]
    held = task.acquiring if task.light else task.own
    task = task._replace(
        stage=model.variant.light[0] if held else "idle",
        own=frozenset(),
        acquiring=held,
        txid=task.txid if model.variant.same_id else NO_ID,
        pid=None,
        epoch=-1,
        batch=(),
        unsent=(),
        suspicious=False,
        light=bool(held),
    )
    return with_task(state, task_id, task)


def after_unknown(model: Model, state: State, task_id: int) -> Step:
    """React to a request whose outcome is unknown."""
    task = state.tasks[task_id]
    if model.variant.unknown == "light" and (task.own or task.light):
        return "unanswered: light step", new_incarnation(model, state, task_id)
    return "unanswered: exit", exit_process(model, state, task_id)


def after_refused_record(model: Model, state: State, task_id: int) -> Step | None:
    """Let the broker refuse the next record and store nothing of it. None: no refusal is left."""
    spent = spend(state, Budget.REFUSALS)
    if not spent:
        return None
    task, variant = spent.tasks[task_id], model.variant
    if variant.refused == "light":
        return "record refused: light step", new_incarnation(model, spent, task_id)
    if variant.refused == "skip":
        left = task.unsent[1:]
        task = task._replace(unsent=left, stage="produce" if left else "add-offsets")
        return "record refused: skipped", with_task(spent, task_id, task)
    if variant.refused == "same-id":
        return _initialised_again(model, spent, task_id)
    return "record refused: exit", exit_process(model, spent, task_id)


def _initialised_again(model: Model, state: State, task_id: int) -> Step | None:
    """BUG: abort under the own id, even if it was fenced since, and resume from memory."""
    task = state.tasks[task_id]
    aborting, answer = init_producer_id(model, state, task.txid)
    if not isinstance(answer, Producer):
        if aborting == state:
            return None
        # until the abort is done, the record is refused once more
        left = aborting.budget[Budget.REFUSALS] + 1
        budget = put(aborting.budget, Budget.REFUSALS, left)
        return "record refused: abort", aborting._replace(budget=budget)
    state = aborting
    task = task._replace(stage="run", pid=answer.pid, epoch=answer.epoch, batch=(), unsent=())
    return "record refused: own id initialised again", with_task(state, task_id, task)


def after_refusal(model: Model, state: State, task_id: int, refusal: Refusal) -> Step | None:
    """React to a refused transactional request. None: the client retries."""
    task = state.tasks[task_id]
    if refusal == "mapping" and model.variant.autobump:
        # librdkafka: abortable, and abort() bumps the producer id silently
        producer = Producer(task.txid, task.pid, task.epoch)
        bumped, answer = init_producer_id(model, state, task.txid, expected=producer)
        if answer == "retry":
            return None
        if isinstance(answer, Producer):
            task = task._replace(stage="run", pid=answer.pid, epoch=answer.epoch, batch=())
            return "mapping: bumped silently", with_task(bumped, task_id, task)
    if model.variant.fenced == "light":
        return f"{refusal}: light step", new_incarnation(model, state, task_id)
    return f"{refusal}: start over", give_up(model, state, task_id)
