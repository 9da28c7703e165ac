"""Mirroring: one transaction per batch, one request per step."""

from collections.abc import Iterator, Sequence

from tests.model.brokers import Refusal, arrive
from tests.model.recovery import (
    after_refusal,
    after_refused_record,
    after_unknown,
    recover_from_suspicion,
)
from tests.model.state import (
    SHADOW,
    Model,
    Offsets,
    Sent,
    State,
    Step,
    Task,
    left_behind,
    with_task,
)
from tests.model.variants import Request, Stage


def _request(task: Task, kind: Request, parts: Offsets = ()) -> Sent:
    return Sent(kind, task.txid, task.pid, task.epoch, parts)


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
    """Add the partitions of a batch to a new transaction. TV2: its first write does."""
    variant = model.variant
    task = state.tasks[task_id]._replace(stage="produce", batch=batch, unsent=batch)
    begun = with_task(state, task_id, task)
    if variant.tv2 and not variant.fuse:
        yield from produce_one(model, begun, task_id)
        return
    requests = []
    if not variant.tv2:
        requests.append(_request(task, "AddPartitions", tuple((p, 0) for p in batch)))
    if variant.fuse:
        if not any(arrive(model, begun, request)[1] for request in requests):
            yield from _refused_record(model, begun, task_id)
        requests += [_produce(task, partition) for partition in batch]
        task = task._replace(stage=_after_produce(model), unsent=())
    yield from _exchange(model, state, task_id, requests, task)


def _produce(task: Task, partition: int) -> Sent:
    return _request(task, "Produce", ((partition, task.next_offsets[partition]),))


def _after_produce(model: Model) -> Stage:
    return "commit-offsets" if model.variant.tv2 else "add-offsets"


def produce_one(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Produce the next record of the batch. All that are unsent may be in flight together."""
    task = state.tasks[task_id]
    yield from _refused_record(model, state, task_id)
    requests = [_produce(task, partition) for partition in task.unsent]
    left = task.unsent[1:]
    done = task._replace(unsent=left, stage="produce" if left else _after_produce(model))
    yield from _exchange(model, state, task_id, requests[:1], done)
    if left:
        yield from _unanswered(model, state, task_id, requests, done)


def add_offsets(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Send AddOffsetsToTxn."""
    task = state.tasks[task_id]
    requests = [_request(task, "AddOffsets", ((SHADOW, 0),))]
    if model.variant.fuse:
        requests.append(_request(task, "TxnOffsetCommit", _batch_offsets(task)))
    stage: Stage = "end" if model.variant.fuse else "commit-offsets"
    yield from _exchange(model, state, task_id, requests, task._replace(stage=stage))


def _batch_offsets(task: Task) -> Offsets:
    return tuple((p, task.next_offsets[p] + 1) for p in task.batch)


def commit_offsets(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Send TxnOffsetCommit."""
    task = state.tasks[task_id]
    stale = task.generation != state.generation or task_id not in state.members
    if model.variant.generations and stale:
        yield from _refused(model, state, task_id, "illegal-generation")
        return
    requests = [_request(task, "TxnOffsetCommit", _batch_offsets(task))]
    yield from _exchange(model, state, task_id, requests, task._replace(stage="end"))


def end(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Send EndTxn(commit)."""
    task = state.tasks[task_id]
    done = task._replace(
        stage="run",
        next_offsets=tuple(o + (p in task.batch) for p, o in enumerate(task.next_offsets)),
        batch=(),
        epoch=task.epoch + (1 if model.variant.tv2 else 0),
    )
    yield from _exchange(model, state, task_id, [_request(task, "EndTxn")], done)


def _exchange(
    model: Model, state: State, task_id: int, requests: Sequence[Sent], done: Task
) -> Iterator[Step]:
    """Send requests one after the other, as one step: `done` is the task after the answers."""
    arrived = state
    for request in requests:
        yield from _unanswered(model, arrived, task_id, [request], done)
        arrived, refusal = arrive(model, arrived, request)
        if refusal == "retry":
            return
        if refusal:
            yield from _refused(model, state, task_id, refusal)
            return
    arrived = with_task(arrived, task_id, done)
    yield ", ".join(f"{request.kind} {request.parts or ''}" for request in requests), arrived
    if len(requests) == 1 and requests[0].kind in model.variant.resends:
        late = left_behind(arrived, requests)
        if late:
            suspicious = with_task(late, task_id, done._replace(suspicious=True))
            yield f"{requests[0].kind}: timed out, sent again", suspicious


def _unanswered(
    model: Model, state: State, task_id: int, requests: Sequence[Sent], done: Task
) -> Iterator[Step]:
    """Let the deadline pass while requests are in flight: the outcome is unknown."""
    variant, kind = model.variant, requests[0].kind
    if variant.ids != "incarnation" or kind not in variant.gives_up:
        return
    late = left_behind(state, requests)
    if not late:
        return
    if variant.believes == kind:
        yield f"{kind} unanswered: taken for a success", with_task(late, task_id, done)
    else:
        label, after = after_unknown(model, late, task_id)
        yield f"{len(requests)} {kind} {label}", after
