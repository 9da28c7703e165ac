"""
From an assignment to mirroring: the stages of every design.

A design is a sequence of these stages (`Variant.acquire`, `Variant.light`).
"""

from collections.abc import Iterator

from tests.model.brokers import Producer, init_producer_id
from tests.model.recovery import after_unknown, give_up
from tests.model.state import (
    NO_ID,
    Claim,
    Model,
    Sent,
    State,
    Step,
    Task,
    Txn,
    bury,
    left_behind,
    live_claims,
    put,
    with_task,
)
from tests.model.variants import Stage, Stages, Variant


def _first_needed(variant: Variant, task: Task, stages: Stages) -> Stage:
    """Return the first stage that is needed: skip init with a live producer, and empty fences."""
    for stage in stages:
        initialised = task.pid is not None and variant.ids != "partition"
        if stage == "init" and initialised:
            continue
        if stage in ("fence", "registry-fence") and not task.fence_list:
            continue
        return stage
    return "run"


def _advance(model: Model, state: State, task_id: int, task: Task) -> State:
    """Move a task to its next stage; after the last one it mirrors."""
    variant = model.variant
    stages = variant.light if task.light else variant.acquire
    rest = stages[stages.index(task.stage) + 1 :]
    return _enter(state, task_id, task, _first_needed(variant, task, rest))


def _enter(state: State, task_id: int, task: Task, stage: Stage) -> State:
    if stage == "run":
        own = task.own | task.acquiring
        task = task._replace(own=own, acquiring=frozenset(), light=False)
    return with_task(state, task_id, task._replace(stage=stage))


def notice_assignment(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Notice partitions that the source group has assigned (possibly long ago)."""
    task = state.tasks[task_id]
    if not task.inbox:
        return
    stage = _first_needed(model.variant, task, model.variant.acquire)
    noticed = task._replace(
        stage=stage,
        acquiring=task.inbox,
        inbox=frozenset(),
        generation=task.granted_generation,
    )
    yield f"assigned {sorted(task.inbox)}", with_task(state, task_id, noticed)


def _with_id(model: Model, state: State, task_id: int) -> tuple[State, Task]:
    """Give a new incarnation an id that was never used."""
    task = state.tasks[task_id]
    if model.variant.ids == "incarnation" and task.txid == NO_ID:
        task = task._replace(txid=len(state.txns))
        state = state._replace(txns=(*state.txns, Txn()))
    return state, task


def init(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Send InitProducerId for the own transactional id."""
    before, variant = state, model.variant
    state, task = _with_id(model, state, task_id)
    state, answer = init_producer_id(model, state, task.txid)
    if not isinstance(answer, Producer):
        if state != before:
            yield "InitProducerId aborts an open transaction", state
        return
    label = f"InitProducerId pid {answer.pid} epoch {answer.epoch}"
    task = task._replace(pid=answer.pid, epoch=answer.epoch)
    if not variant.reclaim and task.claim >= 0:
        yield label, _enter(state, task_id, task, "fetch")
        return
    state = _advance(model, state, task_id, task)
    if variant.ids == "task" and state.tasks[task_id].stage == "claim":
        # One id per task: its own earlier incarnations are dead now. With an id per
        # incarnation they are fenced like all others.
        own = [index for index, claim in enumerate(state.claims) if claim.process == task_id]
        state = bury(state, own) if variant.reclaim else state
    yield label, state


def tail(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Re-read the claims log: a task that was superseded stands down."""
    task = state.tasks[task_id]
    foreign = [
        index
        for index in live_claims(state, len(state.claims), task.acquiring)
        if state.claims[index].process != task_id
    ]
    if any(index > task.held[state.claims[index].partition] for index in foreign):
        yield "superseded: stand down", give_up(model, state, task_id)
    else:
        yield "no later claim", _advance(model, state, task_id, task)


def claim(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Append one claim per partition, all acknowledged."""
    state, task = _with_id(model, state, task_id)
    first = len(state.claims)
    claims = tuple(Claim(p, task.txid, False, task_id) for p in sorted(task.acquiring))
    if "Claim" in model.variant.gives_up:
        parts = tuple((made.partition, 0) for made in claims)
        yield from _unanswered(model, state, task_id, Sent("Claim", task.txid, parts=parts))
    task = task._replace(claim=first)
    if "tail" in model.variant.light:
        for offset, made in enumerate(claims, start=first):
            task = task._replace(held=put(task.held, made.partition, offset))
    state = state._replace(claims=state.claims + claims)
    yield f"appended at {first}", _advance(model, state, task_id, task)


def _unanswered(model: Model, state: State, task_id: int, request: Sent) -> Iterator[Step]:
    """Let the deadline pass during an acquisition."""
    late = left_behind(state, [request])
    if late and request.kind in model.variant.resends:
        yield f"{request.kind} unanswered: sent again", late
    elif late:
        label, after = after_unknown(model, late, task_id)
        yield f"{request.kind} {label}", after


def read(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Read the claims log through the own claim: find what to fence, and what to tombstone then."""
    variant, task = model.variant, state.tasks[task_id]
    earlier = live_claims(state, task.claim, task.acquiring)
    foreign = [index for index in earlier if state.claims[index].txid != task.txid]
    if variant.void_own_id:
        everything = frozenset(range(variant.partitions))
        before = live_claims(state, task.claim, everything)
        state = bury(state, [k for k in before if state.claims[k].txid == task.txid])
    fence_list = [
        state.claims[index].txid
        for index in foreign
        if variant.fence_own or state.claims[index].process != task_id
    ]
    if variant.ids == "incarnation":
        fence_list = list(dict.fromkeys(fence_list))  # in log order: the names mean nothing
    else:
        fence_list = sorted(set(fence_list))
    if variant.bury_first:
        state = bury(state, foreign)
    task = task._replace(fence_list=tuple(fence_list), voids=tuple(foreign))
    yield f"to fence: {fence_list}", _advance(model, state, task_id, task)


def read_stale(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """BUG: the reader may stop before its own claim, and find nothing to fence."""
    yield "stale prefix", _advance(model, state, task_id, state.tasks[task_id])
    yield from read(model, state, task_id)


def fence(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Send InitProducerId for every earlier claimant, then tombstone the claims that were read."""
    task, before = state.tasks[task_id], state
    claims = live_claims(state, len(state.claims), task.acquiring)
    if any(k > task.claim and state.claims[k].process != task_id for k in claims):
        yield "superseded: stand down", give_up(model, state, task_id)
        return
    parallel = model.variant.ids == "incarnation"
    for txid in task.fence_list if parallel else task.fence_list[:1]:
        if "InitProducerId" in model.variant.gives_up + model.variant.resends:
            yield from _unanswered(model, before, task_id, Sent("InitProducerId", txid))
        state, answer = init_producer_id(model, before, txid)
        if isinstance(answer, Producer):
            left = tuple(other for other in task.fence_list if other != txid)
            fenced = task._replace(fence_list=left)
            if left:
                state = with_task(state, task_id, fenced)
            else:
                state = bury(state, task.voids)
                state = _advance(model, state, task_id, fenced._replace(voids=()))
            yield f"InitProducerId(X{txid})", state
        elif state != before:
            yield f"InitProducerId(X{txid}) aborts an open transaction", state


def fetch(model: Model, state: State, task_id: int, *, stable: bool = True) -> Iterator[Step]:
    """Read the shadow offsets."""
    task = state.tasks[task_id]
    pending = {partition for _, offsets in state.pending for partition, _ in offsets}
    if stable and not pending.isdisjoint(task.acquiring):
        return  # UNSTABLE_OFFSET_COMMIT: retried later
    next_offsets = tuple(
        state.shadow[p] if p in task.acquiring else task.next_offsets[p]
        for p in range(model.variant.partitions)
    )
    generation = task.generation
    if model.variant.generations == "source" and task_id in state.members:
        generation = state.generation
    task = task._replace(next_offsets=next_offsets, generation=generation)
    yield f"next offsets {next_offsets}", _advance(model, state, task_id, task)


def fetch_unstable(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """BUG: OffsetFetch without require_stable."""
    yield from fetch(model, state, task_id, stable=False)


def wait_idle(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Wait like a lease: continue once no other id has an open transaction."""
    task = state.tasks[task_id]
    others = (txn for txid, txn in enumerate(state.txns) if txid != task.txid)
    if all(txn.status in ("Empty", "CompleteCommit") for txn in others):
        yield "no open transaction seen", _advance(model, state, task_id, task)


def registry_read(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Read the claimants out of the metadata of the shadow offsets."""
    task = state.tasks[task_id]
    claimants = {state.registry[p] for p in task.acquiring}
    fence_list = tuple(sorted(x for x in claimants if x is not None and x != task.txid))
    task = task._replace(fence_list=fence_list)
    yield f"to fence: {fence_list}", _advance(model, state, task_id, task)


def registry_fence(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Fence the claimant that the metadata named."""
    task, before = state.tasks[task_id], state
    state, answer = init_producer_id(model, state, task.fence_list[0])
    if isinstance(answer, Producer):
        yield "fenced", _advance(model, state, task_id, task._replace(fence_list=()))
    elif state != before:
        yield "aborts an open transaction", state


def registry_write(model: Model, state: State, task_id: int) -> Iterator[Step]:
    """Overwrite it with the own id; generously modelled as one step."""
    task = state.tasks[task_id]
    registry = tuple(
        task.txid if p in task.acquiring else claimant for p, claimant in enumerate(state.registry)
    )
    yield "written", _advance(model, state._replace(registry=registry), task_id, task)
