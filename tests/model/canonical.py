"""
Replaces states that no later step can tell apart by one representative.

This only reduces the search: forget what nothing will read, and number what remains by rank.
"""

from tests.model.state import (
    NO_CLAIM,
    NO_ID,
    NO_PROCESS,
    Claim,
    Epochs,
    Model,
    Sent,
    State,
    Task,
    Txn,
)


def canonical(model: Model, state: State) -> State:
    """Return the representative of a state."""
    variant = model.variant
    tasks = tuple([_tidy(model, task) for task in state.tasks])
    if tasks != state.tasks:
        state = state._replace(tasks=tasks)
    state = _compact_claims(model, state)
    if state.network and variant.verify:
        state = _without_refused(state)
    if variant.ids == "incarnation":
        state = _rename_ids(state)
    return _rank_epochs(state, 2 if variant.tv2 else 1)


def _without_refused(state: State) -> State:
    """Drop late requests of an epoch that is over: brokers that verify will refuse them all."""
    kept = tuple(
        late
        for late in state.network
        if late.pid is None
        or (late.pid == state.txns[late.txid].pid and late.epoch >= state.txns[late.txid].epoch)
    )
    return state if kept == state.network else state._replace(network=kept)


def _tidy(model: Model, task: Task) -> Task:
    variant = model.variant
    if task.stage == "run" and variant.reclaim and task.claim >= 0:
        task = task._replace(claim=NO_CLAIM)
    remembers = task.light and "fetch" not in variant.light
    if not remembers and task.stage in ("idle", "run", "init", "claim"):
        kept = tuple([o if p in task.own else 0 for p, o in enumerate(task.next_offsets)])
        if kept != task.next_offsets:
            task = task._replace(next_offsets=kept)
    if "tail" in variant.light:
        holding = task.own | task.acquiring
        held = tuple(k if p in holding else NO_CLAIM for p, k in enumerate(task.held))
        if held != task.held:
            task = task._replace(held=held)
    return task


def _compact_claims(model: Model, state: State) -> State:
    """Drop tombstoned claims, except those that mark a position in the log."""
    marks = {task.claim for task in state.tasks}
    if "tail" in model.variant.light:
        marks.update(k for task in state.tasks for k in task.held)
    kept = [k for k, claim in enumerate(state.claims) if not claim.buried or k in marks]
    if model.variant.ids == "incarnation":
        state = _blank_marks(state)
    if len(kept) == len(state.claims):
        return state
    place = {k: n for n, k in enumerate(kept)}
    place[NO_CLAIM] = NO_CLAIM
    return state._replace(
        claims=tuple(state.claims[k] for k in kept),
        tasks=tuple(
            task._replace(
                claim=place[task.claim],
                voids=tuple(place[k] for k in task.voids if k in place),
                held=tuple(place[k] for k in task.held),
            )
            for task in state.tasks
        ),
    )


def _blank_marks(state: State) -> State:
    """Blank tombstoned claims: only their position counts."""
    if not any(claim.buried and claim.txid != NO_ID for claim in state.claims):
        return state
    return state._replace(
        claims=tuple(
            Claim(claim.partition, NO_ID, True, NO_PROCESS) if claim.buried else claim
            for claim in state.claims
        )
    )


def _rename_ids(state: State) -> State:
    """Forget ids that no task can use or fence; name the others by where they appear."""
    order = _ids_in_use(state)
    writers = {task.txid for task in state.tasks}  # the id is the producer id
    writers.update(late.txid for late in state.network)
    if not _same_writers(state, writers):
        state = state._replace(
            data_epochs=tuple(_of_writers(known, writers) for known in state.data_epochs),
            shadow_epochs=_of_writers(state.shadow_epochs, writers),
        )
    if order == list(range(len(state.txns))):
        return state
    return _renamed(state, order)


def _ids_in_use(state: State) -> list[int]:
    """Return ids that a task holds or fences, a claim names, or an undecided write belongs to."""
    seen = [task.txid for task in state.tasks]
    seen += [claim.txid for claim in state.claims]
    for task in state.tasks:
        seen += task.fence_list
    seen += [late.txid for late in state.network]
    for _, tail in state.data:
        seen += [pid for _, pid in tail if pid is not None]
    seen += [pid for pid, _ in state.pending]
    seen += [txid for txid, txn in enumerate(state.txns) if txn.participants]
    return [txid for txid in dict.fromkeys(seen) if txid != NO_ID]


def _same_writers(state: State, writers: set[int]) -> bool:
    return all(
        pid in writers for known in (*state.data_epochs, state.shadow_epochs) for pid, _ in known
    )


def _of_writers(known: Epochs, writers: set[int]) -> Epochs:
    """Keep the epochs of producer ids that may write again; the others are never read."""
    return tuple(entry for entry in known if entry[0] in writers)


def _renamed(state: State, order: list[int]) -> State:
    name = {old: new for new, old in enumerate(order)}
    name[NO_ID] = NO_ID
    pid_name: dict[int | None, int | None] = {None: None, **dict(name.items())}

    def epochs(known: Epochs) -> Epochs:
        return tuple(sorted((name[pid], epoch) for pid, epoch in known))

    return state._replace(
        txns=tuple(
            txn._replace(pid=pid_name[txn.pid]) for txn in (state.txns[txid] for txid in order)
        ),
        data=tuple(
            (count, tuple((record, pid_name[pid]) for record, pid in tail))
            for count, tail in state.data
        ),
        data_epochs=tuple(epochs(known) for known in state.data_epochs),
        pending=tuple(sorted((name[pid], offsets) for pid, offsets in state.pending)),
        shadow_epochs=epochs(state.shadow_epochs),
        claims=tuple(claim._replace(txid=name[claim.txid]) for claim in state.claims),
        tasks=tuple(
            task._replace(
                txid=name[task.txid],
                pid=pid_name[task.pid],
                fence_list=tuple(name[txid] for txid in task.fence_list),
            )
            for task in state.tasks
        ),
        network=tuple(
            late._replace(txid=name[late.txid], pid=pid_name[late.pid]) for late in state.network
        ),
    )


def _rank_epochs(state: State, gap: int) -> State:
    """Number the epochs of each id again. Steps of up to `gap` between two of them are kept."""
    known_epochs = (*state.data_epochs, state.shadow_epochs)
    epochs: dict[int | None, set[int]] = {}
    holders: tuple[Txn | Task | Sent, ...] = (*state.txns, *state.tasks, *state.network)
    for holder in holders:
        if holder.pid in epochs:
            epochs[holder.pid].add(holder.epoch)
        elif holder.pid is not None:
            epochs[holder.pid] = {holder.epoch}
    unused = False
    for known in known_epochs:
        for pid, epoch in known:
            if pid in epochs:
                epochs[pid].add(epoch)
            else:
                unused = True
    rank = {pid: _ranks(found, gap) for pid, found in epochs.items()}
    if not unused and all(old == new for found in rank.values() for old, new in found.items()):
        return state
    ranked = [
        tuple((pid, rank[pid][epoch]) for pid, epoch in known if pid in rank)
        for known in known_epochs
    ]
    rank[None] = {-1: -1}
    return state._replace(
        data_epochs=tuple(ranked[:-1]),
        shadow_epochs=ranked[-1],
        txns=tuple(txn._replace(epoch=rank[txn.pid][txn.epoch]) for txn in state.txns),
        tasks=tuple(task._replace(epoch=rank[task.pid][task.epoch]) for task in state.tasks),
        network=tuple(late._replace(epoch=rank[late.pid][late.epoch]) for late in state.network),
    )


def _ranks(epochs: set[int], gap: int) -> dict[int, int]:
    """Return the new number of each epoch. TV2 compares them with the next one (a gap of 2)."""
    ordered, ranks = sorted(epochs), {}
    number = 0
    for before, epoch in zip(ordered[:1] + ordered, ordered, strict=False):
        number += min(epoch - before, gap)
        ranks[epoch] = number
    return ranks
