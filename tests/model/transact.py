"""Mirroring: one transaction per batch, one request per step."""

from collections.abc import Iterator

from tests.model.brokers import (
    Producer,
    Refusal,
    add_to_txn,
    end_txn,
    produce,
    txn_offset_commit,
)
from tests.model.recovery import (
    after_refusal,
    after_refused_record,
    exit_process,
    new_incarnation,
    recover_from_suspicion,
)
from tests.model.state import (
    SHADOW,
    Budget,
    Late,
    Model,
    State,
    Step,
    Task,
    spend,
    with_task,
)


def _producer(task: Task) -> Producer:
    return Producer(task.txid, task.pid, task.epoch)


def _refused(model: Model, state: State, task_id: int, refusal: Refusal) -> Iterator[Step]:
    step = after_refusal(model, state, task_id, refusal)
    if step:
        yield step


def _refused_record(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Let the broker refuse the next record itself, whether or not the writer is fenced."""
    step = after_refused_record(model, state, task_id)
    if step:
        yield step


def run(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Take a step between two transactions."""
    variant, task = model.variant, state.tasks[task_id]
    if task.suspicious and variant.guard:
        yield recover_from_suspicion(model, state, task_id)
        return
    lost = frozenset(p for p in task.own if state.source[p] != task_id)
    if lost:
        kept = task._replace(own=task.own - lost)
        yield f"on_lost {sorted(lost)}", with_task(state, task_id, kept)
    if variant.generations == "source" and task.generation != state.generation:
        joined = state._replace(members=state.members | {task_id})
        task_in = task._replace(generation=state.generation)
        yield "rejoins the target group", with_task(joined, task_id, task_in)
    batch = tuple(p for p in sorted(task.own) if task.next_offsets[p] < variant.records)
    if batch:
        yield from _begin(model, state, task_id, batch)


def _begin(model: Model, state: State, task_id: int, batch: tuple[int, ...]) -> Iterator[Step]:
    task, before = state.tasks[task_id], state
    state, refusal = add_to_txn(state, _producer(task), frozenset(batch))
    if refusal == "retry":
        return
    begun = task._replace(stage="produce", batch=batch, unsent=batch)
    if model.variant.fuse and not refusal:
        yield from _refused_record(model, with_task(state, task_id, begun), task_id)
    if model.variant.fuse:
        for partition in batch:
            if not refusal:
                record = task.next_offsets[partition]
                state, refusal = produce(model, state, _producer(task), partition, record)
        begun = begun._replace(stage="add-offsets", unsent=())
    if refusal:
        yield from _refused(model, before, task_id, refusal)
    else:
        yield f"begins, AddPartitions {batch}", with_task(state, task_id, begun)


def produce_one(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Produce the next record of the batch."""
    task, before = state.tasks[task_id], state
    yield from _refused_record(model, state, task_id)
    partition, *left = task.unsent
    record = task.next_offsets[partition]
    state, refusal = produce(model, state, _producer(task), partition, record)
    if refusal:
        yield from _refused(model, before, task_id, refusal)
        return
    task = task._replace(unsent=tuple(left), stage="produce" if left else "add-offsets")
    yield f"partition {partition} record {record}", with_task(state, task_id, task)


def _batch_offsets(task: Task) -> tuple[tuple[int, int], ...]:
    return tuple((p, task.next_offsets[p] + 1) for p in task.batch)


def add_offsets(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Send AddOffsetsToTxn."""
    task, before = state.tasks[task_id], state
    state, refusal = add_to_txn(state, _producer(task), frozenset([SHADOW]))
    if refusal == "retry":
        return
    if model.variant.fuse and not refusal:
        state, refusal = txn_offset_commit(model, state, _producer(task), _batch_offsets(task))
        task = task._replace(stage="end")
    else:
        task = task._replace(stage="commit-offsets")
    if refusal:
        yield from _refused(model, before, task_id, refusal)
    else:
        yield "done", with_task(state, task_id, task)


def commit_offsets(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Send TxnOffsetCommit."""
    task, before = state.tasks[task_id], state
    stale = task.generation != state.generation or task_id not in state.members
    if model.variant.generations and stale:
        yield from _refused(model, state, task_id, "illegal-generation")
        return
    offsets = _batch_offsets(task)
    state, refusal = txn_offset_commit(model, state, _producer(task), offsets)
    if refusal:
        yield from _refused(model, before, task_id, refusal)
        return
    task = task._replace(stage="end")
    yield f"next offsets {offsets}", with_task(state, task_id, task)
    late = _left_behind(state, task, "TxnOffsetCommit")
    if late:
        suspicious = task._replace(suspicious=True)
        yield "timed out, sent again", with_task(late, task_id, suspicious)


def _left_behind(state: State, task: Task, kind: str) -> State | None:
    """Return the state with a copy of the request still in the network."""
    spent = spend(state, Budget.LATE)
    if not spent:
        return None
    assert task.pid is not None
    if kind == "EndTxn":
        late = Late("EndTxn", task.txid, task.pid, task.epoch, ())
    else:
        late = Late("TxnOffsetCommit", task.txid, task.pid, task.epoch, _batch_offsets(task))
    return spent._replace(network=(*spent.network, late))


def end(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Send EndTxn(commit)."""
    task, before = state.tasks[task_id], state
    if model.variant.ids == "incarnation":
        yield from _unanswered(model, state, task_id)
    state, refusal = end_txn(model, state, _producer(task))
    if refusal == "retry":
        return
    if refusal:
        yield from _refused(model, before, task_id, refusal)
        return
    done = task._replace(
        stage="run",
        next_offsets=tuple(o + (p in task.batch) for p, o in enumerate(task.next_offsets)),
        batch=(),
        epoch=task.epoch + (1 if model.variant.tv2 else 0),
    )
    yield "committed", with_task(state, task_id, done)
    late = _left_behind(state, task, "EndTxn")
    if late:
        suspicious = done._replace(suspicious=True)
        yield "committed; timed out, sent again", with_task(late, task_id, suspicious)


def _unanswered(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Let the deadline pass while EndTxn is in flight: the outcome is unknown."""
    late = _left_behind(state, state.tasks[task_id], "EndTxn")
    if late and model.variant.unknown_exits:
        yield "unanswered: exit", exit_process(model, late, task_id)
    elif late:
        yield "unanswered: light step", new_incarnation(model, late, task_id)
