"""Statuses of flows and groups, made by hand, for the tests of what `status` shows."""

from datetime import UTC, datetime

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.desired import NOTHING_ORDERED
from eos_mirror.core.ledger import Kind, LedgerEntry
from eos_mirror.core.paths_report import PathsReport
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.run_identity import RunIdentity
from eos_mirror.core.states import Condition, Fault, State
from eos_mirror.core.topic_configs import Changes
from eos_mirror.kafka.open_transactions import OpenTransaction
from eos_mirror.operate.flow_run import FlowRun, Runs
from eos_mirror.operate.group_status import GroupPartition, GroupStatus
from eos_mirror.operate.partition_status import PartitionStatus
from eos_mirror.operate.status import FlowStatus

STARTED = datetime(2026, 11, 27, 10, 2, 11, tzinfo=UTC)
SINCE = datetime(2026, 11, 27, 10, 14, 2, tzinfo=UTC)


def partition(
    topic: str,
    number: int,
    state: State = State.MIRRORING,
    reason: str = "",
    *,
    position: int | None = 100,
    fault: Fault | None = None,
    transaction: OpenTransaction | None = None,
) -> PartitionStatus:
    """Return a partition whose source ends at offset 100."""
    return PartitionStatus(
        source=TopicPartition(topic, number),
        remote=TopicPartition(f"A.{topic}", number),
        position=position,
        end=100,
        open_transaction=transaction,
        condition=Condition(state=state, reason=reason, fault=fault),
    )


def flow(
    *partitions: PartitionStatus,
    name: str = "A->B",
    drift: dict[str, Changes] | None = None,
    refused: dict[str, str] | None = None,
    left_out: tuple[str, ...] = (),
    deleted: dict[str, str] | None = None,
    is_old: bool = False,
    written: PathsReport | None = None,
) -> FlowStatus:
    """Return a flow that runs; `is_old` means that its file has changed since its start."""
    leader = RunIdentity(
        started_at=STARTED, host="mirror-1", pid=4711, version="0.1.0", fingerprint="f1"
    )
    return FlowStatus(
        flow=name,
        mode=DeliveryMode.EXACTLY_ONCE,
        run=FlowRun(
            runs=Runs(leader, 1),
            is_there=True,
            owned=[one.source for one in partitions],
            hidden="",
            faults={},
            desired=NOTHING_ORDERED,
            written=written,
        ),
        fingerprint="f2" if is_old else "f1",
        partitions=partitions,
        drift={} if drift is None else drift,
        syncs_configs=True,
        refused={} if refused is None else refused,
        left_out=left_out,
        deleted={} if deleted is None else deleted,
    )


def everything() -> FlowStatus:
    """Return a flow with every kind of line."""
    fault = Fault(cause="RecordRefused", reason="A->B payments-0: too large", since=SINCE)
    return flow(
        partition("orders", 0),
        partition("orders", 1, position=40),
        partition("payments", 0, State.FAILED, fault.reason, position=0, fault=fault),
        partition("payments", 1, State.WAITING, "payments-1 has no leader on A", position=None),
        partition("users", 0, State.PAUSED, "paused by ann: upgrade"),
        partition("users", 1, transaction=OpenTransaction(since=90, end=100)),
        drift={
            "A.orders": Changes(set={"retention.ms": "1"}, delete=[]),
            "A.users": Changes(set={}, delete=["segment.ms"]),
        },
        refused={"a.b": "A->B a.b: its name is taken", "a_b": "A->B a.b: its name is taken"},
        left_out=("B.orders",),
        deleted={"returns": "A.returns"},
        is_old=True,
        written=PathsReport(run="r", passed=1_980, decoded={"changed": 15, "small": 5}),
    )


EVERYTHING = """\
A->B: failed, exactly-once, 6 partitions, lag 160 and unknown of 1
  run: mirror-1, process 4711, since 2026-11-27 10:02:11 UTC, version 0.1.0, 1 on standby
  the run was started with another configuration than this file: `reload` it, or restart
  passed through: 99.0 % of 2,000 records since its start; decoded: changed 15, small 5
  orders: 2 partitions, lag 60: 2 mirroring
  payments: 2 partitions, lag 100 and unknown of 1: 1 failed, 1 waiting
  payments-0: failed since 2026-11-27 10:14:02 UTC (RecordRefused): A->B payments-0: too large
  payments-1: waiting: payments-1 has no leader on A
  users: 2 partitions, lag 0: 1 paused, 1 mirroring
  users: paused by ann: upgrade
  users-1: a transaction is open since offset 90; 10 offsets wait
  A.orders is not as its source topic: retention.ms should be 1 (the next sync does that)
  A.users is not as its source topic: segment.ms should not be set (the next sync does that)
  not mirrored: A->B a.b: its name is taken
  not mirrored back to where they came from: B.orders
  returns: deleted on the source; its copy A.returns stays
"""
"""What `status` prints of it where there are no tables. Scripts may read this."""


def group(name: str, *offsets: tuple[int | None, int | None], reason: str = "") -> GroupStatus:
    """Return a group that committed offset 50; each pair is `upstream` and `there`."""
    partitions = [
        GroupPartition(
            source=TopicPartition("orders", number),
            remote=TopicPartition("A.orders", number),
            committed=50,
            upstream=upstream,
            downstream=upstream,
            there=there,
        )
        for number, (upstream, there) in enumerate(offsets)
    ]
    return GroupStatus(group=name, partitions=partitions, reason=reason)


def groups() -> list[GroupStatus]:
    """Return a group of each kind."""
    return [
        group("", (50, 50)),
        group("audit", (50, 50), (40, 40), reason="it has members on the target"),
        group("late", (50, 20)),
        group("lost", reason="its coordinator does not answer"),
        group("orders", (50, 20), (50, 50), reason="it has members on the target"),
        group("reports", (None, None), reason="orders-0: nothing of it is mirrored yet"),
    ]


GROUPS = """\
A->B: 6 groups, 2 behind on B, 1 not translated, 1 skipped
  (no name): 1 partition, in step
  audit: 2 partitions, 1 ahead of the mirror
  late: 1 partition, 1 behind on the target: the next sync of the run moves it
  lost: skipped: its coordinator does not answer
  orders: 2 partitions, 1 behind on the target: it has members on the target
  reports: 1 partition, 1 not translated: orders-0: nothing of it is mirrored yet
"""
"""What `status --groups` printed of them before there were tables."""


def ledger() -> list[LedgerEntry]:
    """Return two entries."""
    return [
        LedgerEntry(kind=Kind.FENCE, at=STARTED, by="mirror-1:4711", details={"fenced": 2}),
        LedgerEntry(
            kind=Kind.STOP,
            at=SINCE,
            by="mirror-1:4711",
            details={"partition": "payments-0", "cause": "RecordRefused"},
        ),
    ]


LEDGER = """\
A->B: 2 entries
  2026-11-27T10:02:11+00:00 fence fenced 2
  2026-11-27T10:14:02+00:00 stop  partition payments-0, cause RecordRefused
"""
"""What `status --ledger` printed of them before there were tables."""
