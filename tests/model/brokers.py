"""
The target cluster: transaction coordinator, partitions, group coordinator.

One call is one request, handled atomically on arrival. Markers are written later, one
participant at a time, after EndTxn was answered.
"""

from typing import Literal, NamedTuple

from tests.model.state import (
    DECIDED,
    NO_PROCESS,
    SHADOW,
    Budget,
    Claim,
    Epochs,
    Model,
    Offsets,
    PartitionLog,
    Sent,
    State,
    Status,
    put,
    spend,
    with_txn,
)

Refusal = Literal["retry", "fenced", "mapping", "illegal-generation"]
Answer = tuple[State, Refusal | None]


class Violation(Exception):  # noqa: N818 - the finding of an exploration, not a failure of it
    """Committed records of a partition are not 0, 1, 2, ... in log order."""


class Producer(NamedTuple):
    """What a client sends with every transactional request."""

    txid: int
    pid: int | None
    epoch: int


def newest_epoch(epochs: Epochs, pid: int | None) -> int:
    """Return the newest epoch seen of a producer id; -1 for an unknown one."""
    return next((epoch for known, epoch in epochs if known == pid), -1)


def see_epoch(epochs: Epochs, pid: int, epoch: int) -> Epochs:
    """Return the epochs after a write of this producer."""
    return tuple(sorted([*(e for e in epochs if e[0] != pid), (pid, epoch)]))


def init_producer_id(
    model: Model, state: State, txid: int, *, expected: Producer | None = None
) -> tuple[State, Producer | Refusal]:
    """
    InitProducerId: abort what is open, wait for markers, bump the epoch.

    A `retry` with a changed state means that an open transaction is being aborted.
    """
    txn = state.txns[txid]
    if txn.status in DECIDED:
        return state, "retry"  # CONCURRENT_TRANSACTIONS
    if expected and txn.pid is not None and (expected.pid, expected.epoch) != txn[:2]:
        return state, "fenced"
    if txn.status == "Ongoing":
        spent = spend(state, Budget.ABORTS)
        if not spent:
            model.cut += 1
            return state, "retry"
        return with_txn(
            spent, txid, txn._replace(epoch=txn.epoch + 1, status="PrepareAbort")
        ), "retry"
    pid, epoch = txn.pid, txn.epoch + 1
    if pid is None:  # a new or an expired id
        if model.variant.ids == "incarnation":
            pid = txid  # one incarnation, one producer id
        else:
            pid = state.next_pid
            state = state._replace(next_pid=pid + 1)
        epoch = 0
    txn = txn._replace(pid=pid, epoch=epoch, status="Empty", participants=frozenset())
    return with_txn(state, txid, txn), Producer(txid, pid, epoch)


def add_to_txn(state: State, producer: Producer, participants: frozenset[int]) -> Answer:
    """Handle AddPartitionsToTxn and AddOffsetsToTxn."""
    txn = state.txns[producer.txid]
    if txn.pid != producer.pid:
        return state, "mapping"
    if txn.epoch != producer.epoch:
        return state, "fenced"
    if txn.status in DECIDED:
        return state, "retry"
    if txn.status == "Ongoing":
        participants |= txn.participants
    txn = txn._replace(status="Ongoing", participants=participants)
    return with_txn(state, producer.txid, txn), None


def arrive(model: Model, state: State, request: Sent) -> Answer:
    """
    Handle any request that may be late.

    Raises:
        Violation: It is a commit that makes a duplicate, a gap or a wrong order visible.
    """
    if request.kind == "Claim":
        made = [Claim(part, request.txid, False, NO_PROCESS) for part, _ in request.parts]
        return state._replace(claims=(*state.claims, *made)), None
    if request.kind == "InitProducerId":
        return init_producer_id(model, state, request.txid)[0], None
    producer = Producer(*request[1:4])
    if request.kind in ("AddPartitions", "AddOffsets"):
        return add_to_txn(state, producer, frozenset(part for part, _ in request.parts))
    if request.kind == "Produce":
        return produce(model, state, producer, *request.parts[0])
    if request.kind == "TxnOffsetCommit":
        return txn_offset_commit(model, state, producer, request.parts)
    return end_txn(model, state, producer)


def _joined(model: Model, state: State, producer: Producer, participant: int) -> Answer:
    """Add the participant of a write to its transaction, if the protocol does (TV2)."""
    if not model.variant.tv2:
        return state, None
    return add_to_txn(state, producer, frozenset([participant]))


def _verified(model: Model, state: State, producer: Producer, participant: int) -> bool:
    """Return whether a broker that verifies (KIP-890 part 1) accepts this write."""
    txn = state.txns[producer.txid]
    return not model.variant.verify or (
        txn[:3] == (producer.pid, producer.epoch, "Ongoing") and participant in txn.participants
    )


def produce(model: Model, state: State, producer: Producer, partition: int, record: int) -> Answer:
    """Produce one record."""
    state, refusal = _joined(model, state, producer, partition)
    if refusal:
        return state, refusal
    epochs = state.data_epochs[partition]
    if producer.epoch < newest_epoch(epochs, producer.pid):
        return state, "fenced"
    if producer.pid is None or not _verified(model, state, producer, partition):
        return state, "fenced"
    committed, tail = state.data[partition]
    log = (committed, (*tail, (record, producer.pid)))
    epochs = see_epoch(epochs, producer.pid, producer.epoch)
    return state._replace(
        data=put(state.data, partition, log),
        data_epochs=put(state.data_epochs, partition, epochs),
    ), None


def txn_offset_commit(model: Model, state: State, producer: Producer, offsets: Offsets) -> Answer:
    """Handle TxnOffsetCommit: the shadow offsets become pending."""
    state, refusal = _joined(model, state, producer, SHADOW)
    if refusal:
        return state, refusal
    pid = producer.pid
    if producer.epoch < newest_epoch(state.shadow_epochs, pid):
        return state, "fenced"
    if pid is None or not _verified(model, state, producer, SHADOW):
        return state, "fenced"
    merged = dict(next((known for owner, known in state.pending if owner == pid), ()))
    merged.update(offsets)
    others = [entry for entry in state.pending if entry[0] != pid]
    return state._replace(
        pending=tuple(sorted([*others, (pid, tuple(sorted(merged.items())))])),
        shadow_epochs=see_epoch(state.shadow_epochs, pid, producer.epoch),
    ), None


def end_txn(model: Model, state: State, producer: Producer) -> Answer:
    """
    Handle EndTxn(commit).

    Raises:
        Violation: This decision makes a duplicate, a gap or a wrong order visible.
    """
    txn, tv2 = state.txns[producer.txid], model.variant.tv2
    if txn.pid != producer.pid:
        return state, "mapping"
    if (
        tv2
        and txn.epoch == producer.epoch + 1
        and txn.status in ("PrepareCommit", "CompleteCommit")
    ):
        return state, None  # the retry of a decided commit
    if txn.epoch != producer.epoch or txn.status in ("PrepareAbort", "Empty"):
        return state, "fenced"
    if txn.status == "PrepareCommit":
        return state, "retry"
    if txn.status == "CompleteCommit":  # TV1 cannot tell a retry from a new request
        return state, "fenced" if tv2 else None
    txn = txn._replace(status="PrepareCommit", epoch=txn.epoch + (1 if tv2 else 0))
    return _decide(with_txn(state, producer.txid, txn), producer.txid), None


def _decide(state: State, txid: int) -> State:
    """Commit the records of a transaction, and check every partition."""
    txn, data = state.txns[txid], []
    for partition, (committed, undecided) in enumerate(state.data):
        tail = undecided
        if partition in txn.participants:
            tail = tuple((record, None if pid == txn.pid else pid) for record, pid in tail)
        visible = [*range(committed), *(record for record, pid in tail if pid is None)]
        if visible != list(range(len(visible))):
            raise Violation(f"partition {partition}: committed records in log order = {visible}")
        data.append(_folded(committed, tail))
    return state._replace(data=tuple(data))


def _folded(committed: int, tail: tuple[tuple[int, int | None], ...]) -> PartitionLog:
    """Count the decided records at the head of the tail."""
    while tail and tail[0][1] is None:
        committed, tail = committed + 1, tail[1:]
    return committed, tail


def write_marker(state: State, txid: int, participant: int) -> State:
    """Write the marker of a decided transaction to one participant."""
    txn = state.txns[txid]
    assert txn.pid is not None
    if participant == SHADOW:
        state = _shadow_marker(state, txn.pid, txn.epoch, committed=txn.status == "PrepareCommit")
    else:
        committed, tail = state.data[participant]
        if txn.status == "PrepareAbort":  # read_committed readers never see these records
            committed, tail = _folded(committed, tuple(e for e in tail if e[1] != txn.pid))
        epochs = see_epoch(state.data_epochs[participant], txn.pid, txn.epoch)
        state = state._replace(
            data=put(state.data, participant, (committed, tail)),
            data_epochs=put(state.data_epochs, participant, epochs),
        )
    left = txn.participants - {participant}
    done: Status = "CompleteCommit" if txn.status == "PrepareCommit" else "Empty"
    return with_txn(
        state, txid, txn._replace(participants=left, status=txn.status if left else done)
    )


def _shadow_marker(state: State, pid: int, epoch: int, *, committed: bool) -> State:
    """Apply or drop pending offsets at the group coordinator."""
    shadow = list(state.shadow)
    for owner, offsets in state.pending:
        if owner == pid and committed:
            for partition, next_offset in offsets:
                shadow[partition] = next_offset
    return state._replace(
        shadow=tuple(shadow),
        pending=tuple(entry for entry in state.pending if entry[0] != pid),
        shadow_epochs=see_epoch(state.shadow_epochs, pid, epoch),
    )
