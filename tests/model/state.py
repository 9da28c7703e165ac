"""
What the model remembers: brokers, claims log, tasks, and the budget of misfortunes.

Everything is a tuple of hashable parts, because a state is a key of the explorer's table.
Identifiers are small integers: partitions, tasks, transactional ids, producer ids.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Literal, NamedTuple, TypeVar

from tests.model.variants import Request, Stage, Variant

T = TypeVar("T")

Status = Literal["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit"]
"""Status of a transactional id at its coordinator. Empty also means CompleteAbort."""

DECIDED: Sequence[Status] = ("PrepareCommit", "PrepareAbort")
"""The outcome is certain, but markers are still to be written."""

SHADOW = -1
"""The shadow offsets as a participant of a transaction; data partitions are 0, 1, ..."""

NO_CLAIM = -1
NO_PROCESS = -1
NO_ID = -1

Epochs = tuple[tuple[int, int], ...]
"""Newest epoch per producer id, as a partition or the group coordinator has seen it."""

Offsets = tuple[tuple[int, int], ...]
"""(partition, next_offset) of one TxnOffsetCommit, or (partition, record) of other requests."""

PartitionLog = tuple[int, tuple[tuple[int, int | None], ...]]
"""Count of the committed records 0, 1, ...; then the tail as (record, open producer id)."""


class Budget(IntEnum):
    """What may still go wrong; the index of its counter in `State.budget`."""

    FORCED = 0
    GRACEFUL = 1
    CRASH = 2
    TIMEOUT = 3
    LATE = 4
    EXPIRE = 5
    KICK = 6
    ABORTS = 7
    REFUSALS = 8


class Txn(NamedTuple):
    """A transactional id at its coordinator."""

    pid: int | None = None
    epoch: int = -1
    status: Status = "Empty"
    participants: frozenset[int] = frozenset()


class Claim(NamedTuple):
    """A record of the claims log; its tombstone is folded into it."""

    partition: int
    txid: int
    buried: bool
    process: int


class Sent(NamedTuple):
    """A request. In `State.network`: no client waits for it any more."""

    kind: Request
    txid: int
    pid: int | None = None
    epoch: int = -1
    parts: Offsets = ()


class Task(NamedTuple):
    """
    A mirror task: what one process remembers.

    Attributes:
        stage: The next thing it does.
        own: Partitions it mirrors.
        acquiring: Partitions it is about to mirror.
        inbox: Partitions the source group has handed out, not yet noticed.
        next_offsets: Position by partition.
        claim: Log index of the first claim of the current acquisition.
        fence_list: Transactional ids still to fence.
        voids: Log indices of the claims to tombstone after the fences.
        batch: Partitions in the open transaction.
        unsent: Those of them that are still to be produced.
        suspicious: The last commit may have been sent twice.
        generation: Generation of the target group that this task uses.
        granted_generation: Generation of the target group when partitions were last assigned.
        light: It is taking the light step, not a first acquisition.
        held: By partition, log index of its own claim (only where the light step needs it).
    """

    stage: Stage = "idle"
    own: frozenset[int] = frozenset()
    acquiring: frozenset[int] = frozenset()
    inbox: frozenset[int] = frozenset()
    txid: int = NO_ID
    pid: int | None = None
    epoch: int = -1
    next_offsets: tuple[int, ...] = ()
    claim: int = NO_CLAIM
    fence_list: tuple[int, ...] = ()
    voids: tuple[int, ...] = ()
    batch: tuple[int, ...] = ()
    unsent: tuple[int, ...] = ()
    suspicious: bool = False
    generation: int = 0
    granted_generation: int = 0
    light: bool = False
    held: tuple[int, ...] = ()


class State(NamedTuple):
    """
    The state of the brokers and of all tasks.

    Attributes:
        txns: Transactions by transactional id.
        data: Logs by partition.
        data_epochs: Newest epochs by partition.
        shadow: Committed shadow offset by partition.
        pending: Shadow offsets of undecided transactions, by producer id.
        source: By partition, the task to which the source group assigned it.
        budget: What may still go wrong, by `Budget`.
        registry: Claimant by partition, in the metadata of the shadow offset.
    """

    txns: tuple[Txn, ...]
    data: tuple[PartitionLog, ...]
    data_epochs: tuple[Epochs, ...]
    shadow: tuple[int, ...]
    pending: tuple[tuple[int, Offsets], ...]
    shadow_epochs: Epochs
    claims: tuple[Claim, ...]
    source: tuple[int, ...]
    tasks: tuple[Task, ...]
    budget: tuple[int, ...]
    network: tuple[Sent, ...]
    next_pid: int
    generation: int
    members: frozenset[int]
    registry: tuple[int | None, ...]


Step = tuple[str, State]
"""What happened, and the state after it."""


class Model:
    """A variant, and the count of schedules that its bounds cut off."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.cut = 0


Stepper = Callable[[Model, State, int], Iterator[Step]]
"""Every next step of one task in one stage. No step: it waits."""


def put(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    """Return the tuple with one item replaced."""
    return (*items[:index], item, *items[index + 1 :])


def with_task(state: State, task_id: int, task: Task) -> State:
    """Return the state with one task replaced."""
    return state._replace(tasks=put(state.tasks, task_id, task))


def with_txn(state: State, txid: int, txn: Txn) -> State:
    """Return the state with one transactional id replaced."""
    return state._replace(txns=put(state.txns, txid, txn))


def spend(state: State, budget: Budget) -> State | None:
    """Return the state with one misfortune less to come, or None if none is left."""
    left = state.budget[budget]
    return state._replace(budget=put(state.budget, budget, left - 1)) if left > 0 else None


def blank_task(variant: Variant, task_id: int) -> Task:
    """Return a process that has just started."""
    fixed = {"task": task_id, "partition": 0, "incarnation": NO_ID}[variant.ids]
    if variant.void_own_id and task_id == 2:
        fixed = 0  # two processes configured with the same transactional id
    return Task(
        txid=fixed,
        next_offsets=(0,) * variant.partitions,
        held=(NO_CLAIM,) * variant.partitions,
    )


def left_behind(state: State, requests: Iterable[Sent]) -> State | None:
    """Return the state with requests in the network that no client waits for."""
    left: State | None = state
    for request in requests:
        left = left and spend(left, Budget.LATE)
        left = left and left._replace(network=(*left.network, request))
    return left


def first_state(variant: Variant) -> State:
    """Return the start: nothing is written, and task 0 was just assigned every partition."""
    count = variant.partitions
    tasks = [blank_task(variant, task_id) for task_id in range(variant.tasks)]
    tasks[0] = tasks[0]._replace(inbox=frozenset(range(count)))
    if variant.generations in ("lanes", "late-lanes"):
        tasks[0] = tasks[0]._replace(generation=1, granted_generation=1)
    ids = {"task": variant.tasks, "partition": 1, "incarnation": 0}[variant.ids]
    return State(
        txns=(Txn(),) * ids,
        data=((0, ()),) * count,
        data_epochs=((),) * count,
        shadow=(0,) * count,
        pending=(),
        shadow_epochs=(),
        claims=(),
        source=(0,) * count,
        tasks=tuple(tasks),
        budget=(
            variant.forced,
            variant.graceful,
            variant.crash,
            variant.timeout,
            variant.late,
            variant.expire,
            variant.kick,
            variant.aborts,
            variant.refusals,
        ),
        network=(),
        next_pid=0,
        generation=1,
        members=frozenset(range(variant.tasks)),
        registry=(None,) * count,
    )


def live_claims(state: State, before: int, partitions: frozenset[int]) -> list[int]:
    """Return log indices below `before` of claims on these partitions without a tombstone."""
    return [
        index
        for index, claim in enumerate(state.claims[:before])
        if claim.partition in partitions and not claim.buried
    ]


def bury(state: State, indices: Iterable[int]) -> State:
    """Tombstone claims."""
    ended = set(indices)
    if not ended:
        return state
    return state._replace(
        claims=tuple(
            claim._replace(buried=True) if index in ended else claim
            for index, claim in enumerate(state.claims)
        )
    )
