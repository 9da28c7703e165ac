"""Every checker of the nemesis complains about the fault that it is made for."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from eos_mirror.core.flow import Flow
from eos_mirror.core.map_segment import Run, Segment
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.ports import PartitionEnd
from eos_mirror.replication.lost_markers import split_partitions
from eos_mirror.replication.partition import OwnedPartition
from eos_mirror.telemetry.events import EVENTS
from eos_mirror.testing import Record, compare_partition
from tests.chaos import allowed, checks
from tests.chaos.audit import transactions_of
from tests.chaos.restarting_driver import Exit, Heard
from tests.chaos.site import LONELY

ONE = TopicPartition("orders", 0)


def record(number: int, offset: int | None = None) -> Record:
    """Return the n-th record."""
    return Record(key=b"k", value=b"%d" % number, offset=number if offset is None else offset)


WRITTEN = [record(n) for n in range(6)]


def test_a_copy_of_a_compacted_partition_may_have_more_than_the_source_kept() -> None:
    """The source may compact old values before or after they are copied."""
    copy = [record(0), record(1), record(4), record(5)]

    assert checks.check_compacted(WRITTEN, [record(4), record(5)], copy) == []


@pytest.mark.parametrize(
    ("copy", "complaint"),
    [
        ([record(4)], "record 5 is missing"),
        ([record(4), record(4), record(5)], "offset 4 is record 4, after record 4"),
        ([record(5), record(4)], "offset 4 is record 4, after record 5"),
        ([record(4), record(9), record(5)], "offset 9 was never written"),
    ],
    ids=["missing", "twice", "reordered", "foreign"],
)
def test_a_wrong_copy_of_a_compacted_partition_is_seen(copy: list[Record], complaint: str) -> None:
    """A missing, duplicated, reordered or foreign record is a complaint."""
    assert checks.check_compacted(WRITTEN, [record(4), record(5)], copy) == [complaint]


BATCH_TWICE = [*WRITTEN[:4], *WRITTEN[2:]]


def test_at_least_once_a_batch_may_come_twice() -> None:
    """A duplicated batch is accepted if the first copies are in order and none is missing."""
    assert checks.check_repeated(compare_partition(WRITTEN, BATCH_TWICE)) == []
    assert checks.check_repeated_compacted(WRITTEN, WRITTEN[4:], BATCH_TWICE) == []
    assert checks.check_bound(2, 1, 2) == []


@pytest.mark.parametrize(
    ("copy", "complaint"),
    [
        (BATCH_TWICE[:-1], "1 records missing"),
        ([WRITTEN[1], WRITTEN[0], *WRITTEN[1:]], "1 records reordered"),
        ([*BATCH_TWICE, record(9)], "1 records foreign"),
    ],
    ids=["missing", "reordered", "foreign"],
)
def test_at_least_once_a_wrong_copy_is_seen(copy: list[Record], complaint: str) -> None:
    """A missing, reordered or foreign record is a complaint."""
    (said,) = checks.check_repeated(compare_partition(WRITTEN, copy))
    assert said.startswith(complaint)


def test_at_least_once_a_wrong_copy_of_a_compacted_partition_is_seen() -> None:
    """Missing records, foreign records and too many duplicates are complaints."""
    found = checks.check_repeated_compacted(WRITTEN, WRITTEN[4:], [record(4), record(9)])
    assert len(found) == 2
    assert checks.check_bound(3, 1, 2) == ["3 duplicates, of 2 that are explained"]


@pytest.mark.parametrize(
    "copy",
    [WRITTEN[:-1], [*WRITTEN, WRITTEN[0]], WRITTEN[::-1]],
    ids=["missing", "twice", "reordered"],
)
def test_a_wrong_copy_is_seen(copy: list[Record]) -> None:
    """The comparison covers the sequence of records, not only their set."""
    assert not compare_partition(WRITTEN, copy).exact


@pytest.mark.parametrize(
    "seen",
    [
        [*WRITTEN, record(6)],
        WRITTEN[:-1],
        [*WRITTEN[:3], record(9, 3), *WRITTEN[4:]],
        [*WRITTEN[:3], record(3, 7), *WRITTEN[4:]],
    ],
    ids=["taken back", "not seen", "changed", "moved"],
)
def test_a_reader_who_saw_something_else_is_believed(seen: list[Record]) -> None:
    """A record that was visible once must be there at the end, at the same offset."""
    assert checks.check_witness(WRITTEN, WRITTEN) == []
    assert len(checks.check_witness(seen, WRITTEN)) == 1


@pytest.mark.parametrize("shadow", [{}, {ONE: 6}, {ONE: 8}], ids=["none", "behind", "ahead"])
def test_a_position_that_is_not_the_end_is_seen(shadow: dict[TopicPartition, int]) -> None:
    """A position that is missing, too low or too high is a complaint."""
    assert checks.check_positions({ONE: 7}, {ONE: 7}) == []
    assert len(checks.check_positions(shadow, {ONE: 7})) == 1


def offset_map(*transactions: tuple[int, int, int], end: int) -> OffsetMap:
    """Return a map with one run (upstream, downstream, length) for each transaction."""
    tail = MapTail.empty(0, downstream=0)
    for upstream, downstream, length in transactions:
        tail.add([(upstream, length)], downstream)
    tail.advance(end)
    return OffsetMap([], tail)


PAIRS = [(0, 0), (1, 1), (2, 2), (5, 4), (6, 5)]


def test_a_right_map_translates_every_offset() -> None:
    """A map with gaps on both sides and control records at the end passes."""
    right = offset_map((0, 0, 3), (5, 4, 2), end=9)

    assert checks.check_translation(right, PAIRS, 9) == []


@pytest.mark.parametrize(
    "wrong",
    [
        offset_map((0, 0, 3), (5, 5, 2), end=9),
        offset_map((0, 0, 3), (6, 5, 1), end=9),
        offset_map((0, 0, 3), (5, 4, 2), end=8),
    ],
    ids=["shifted", "a record is unknown", "too short"],
)
def test_a_wrong_map_is_seen(wrong: OffsetMap) -> None:
    """One wrong offset is enough for a complaint."""
    assert checks.check_translation(wrong, PAIRS, 9)


def segment(number: int, upstream: tuple[int, int], downstream_start: int, *runs: Run) -> Segment:
    """Return a segment of a chain."""
    return Segment(
        number=number,
        commits=1,
        upstream_start=upstream[0],
        upstream_end=upstream[1],
        downstream_start=downstream_start,
        runs=runs,
    )


FIRST = segment(0, (0, 3), 0, Run(0, 0, 3))


def test_a_whole_chain_is_accepted() -> None:
    """A chain with a marker between two segments passes."""
    assert checks.check_chain([FIRST, segment(1, (3, 6), 3, Run(4, 4, 2))]) == []


@pytest.mark.parametrize(
    "after",
    [
        segment(2, (3, 6), 3),
        segment(1, (4, 6), 3),
        segment(1, (2, 6), 3, Run(2, 4, 4)),
        segment(1, (3, 6), 4),
        segment(1, (3, 6), 3, Run(3, 2, 3)),
    ],
    ids=["number", "gap", "overlap", "downstream", "overlapping runs"],
)
def test_a_broken_chain_is_seen(after: Segment) -> None:
    """A segment that does not start where the previous one ended is a complaint."""
    assert checks.check_chain([FIRST, after])


def test_a_chain_without_its_beginning_is_seen() -> None:
    """The map of a run must start with segment 0, because nothing of it is ever removed."""
    assert checks.check_chain([segment(1, (3, 6), 3)])


DONE = PartitionEnd(stable=7, written=7)


@pytest.mark.parametrize(
    "complain",
    [
        lambda: checks.check_leftovers(["claim"], {}, {ONE: DONE}),
        lambda: checks.check_leftovers([], {"eos-mirror.A.B.1": "Ongoing"}, {ONE: DONE}),
        lambda: checks.check_leftovers([], {}, {ONE: PartitionEnd(stable=6, written=7)}),
        lambda: checks.check_leftovers([], {}, {ONE: DONE}, processes=[7]),
    ],
    ids=["claim", "transaction", "LSO", "process"],
)
def test_what_a_stop_leaves_behind_is_seen(complain: Callable[[], list[str]]) -> None:
    """A claim, a transaction, undecided records or a process that is left is a complaint."""
    assert checks.check_leftovers([], {"eos-mirror.A.B.1": "Empty"}, {ONE: DONE}) == []
    assert len(complain()) == 1


def test_the_list_of_transactions_is_read() -> None:
    """Only our transactional ids are read; the state is the last column."""
    listed = (
        "TransactionalId       \tCoordinator\tProducerId\tTransactionState\n"
        "eos-mirror.A.B.0a1b2c \t1          \t4004      \tCompleteCommit  \n"
        "eos-mirror.A.B.ffffff \t1          \t4005      \tOngoing         \n"
        "another-client        \t1          \t4006      \tOngoing         \n"
    )

    assert transactions_of(listed) == {
        "eos-mirror.A.B.0a1b2c": "CompleteCommit",
        "eos-mirror.A.B.ffffff": "Ongoing",
    }


def test_a_source_that_forgot_something_is_seen() -> None:
    """A source that lost an acknowledged record is a complaint: the run proves nothing."""
    assert checks.check_source([1, 2], [1, 2, 3]) == []
    assert len(checks.check_source([1, 2], [1, 3])) == 1


def test_a_visible_aborted_record_is_seen() -> None:
    """An aborted record that a reader saw is a complaint."""
    assert checks.check_aborted([5], [1, 2]) == []
    assert len(checks.check_aborted([5], [1, 5])) == 1


def heard(event: str, **fields: object) -> Heard:
    """Return an event of the first driver."""
    return Heard(at=0.0, run=0, fields={"event": event, **fields})


@pytest.mark.parametrize(
    "event",
    [
        heard("task.restarting", reason="killed by signal 9"),
        heard("task.restarting", cause="ProducerFenced", reason="commit: _FENCED"),
        heard("task.restarting", reason="watchdog: commit took longer than 7 s"),
        heard("commit.suspicious", reason="the commit took 0.9 s: it may have been sent twice"),
        heard("ready"),
    ],
    ids=lambda event: f"{event.name} {event.fields.get('reason', '')}",
)
def test_an_explained_event_is_no_complaint(event: Heard) -> None:
    """An event that a fault of the nemesis explains is accepted."""
    assert allowed.check_events([event], single_node=False) == []


@pytest.mark.parametrize(
    "event",
    [
        heard("task.restarting", reason="ValueError: 7"),
        heard("task.restarting", reason="its loop stood still for 30.2 s"),
        heard("task.failed", reason="ForeignWriter: 7"),
        heard("partition.stopped", cause="PositionLost", reason="gone"),
        heard("partition.stopped", cause="MarkersLost", reason="gone"),
        heard("something.new"),
    ],
    ids=lambda event: f"{event.name} {event.fields.get('cause') or event.fields.get('reason', '')}",
)
def test_an_unexplained_event_is_seen(event: Heard) -> None:
    """A bug, a permanent stop or an event that the table does not name is a complaint."""
    assert len(allowed.check_events([event], single_node=False)) == 1


@pytest.mark.parametrize("seen", [[], [8030]], ids=["aborted", "doubled"])
def test_a_split_transaction_is_accepted_of_the_partition_without_replicas_only(
    seen: list[int],
) -> None:
    """Its only broker was away when the transaction was decided. Texts are those of the product."""

    def split(topic: str) -> Heard:
        owned = owned_partition(topic)
        reader = SimpleNamespace(
            first_offsets=lambda starts, *, committed: dict.fromkeys(
                starts, seen if committed else [8029]
            )
        )
        (fault,) = split_partitions(Flow("A", "B"), [owned], reader).values()
        return heard("partition.stopped", cause="MarkersLost", reason=str(fault))

    assert allowed.check_events([split(LONELY)], single_node=False) == []
    assert len(allowed.check_events([split("chaos-plain")], single_node=False)) == 1


def owned_partition(topic: str) -> OwnedPartition:
    """Return a partition whose shadow offset counts the record at 8029 of its copy."""
    tail = MapTail.empty(0, downstream=0)
    tail.add([(0, 10)], 8020)
    tail.advance(10)
    return OwnedPartition(
        source=TopicPartition(topic, 0),
        remote=TopicPartition(f"A.{topic}", 0),
        topic_id="id",
        position=Position(10),
        tail=tail,
        sequence=1,
        committed=10,
        committed_at=0.0,
    )


def test_lost_markers_are_accepted_of_a_single_node_only() -> None:
    """A single-node Kafka can lose transaction markers by itself, so the event is accepted."""
    lost = heard("partition.stopped", cause="MarkersLost", reason="gone")

    assert allowed.check_events([lost], single_node=True) == []


def test_every_event_of_the_product_is_judged() -> None:
    """The table of allowed events names every event of the product."""
    assert {event.name for event in EVENTS} <= allowed.EVENTS.keys()


@pytest.mark.parametrize(
    ("code", "wanted", "said", "complaints"),
    [
        (-9, 9, "", 0),
        (70, None, "", 0),
        (2, None, "cluster B does not answer at B.bootstrap.servers", 0),
        (2, None, "unknown key", 1),
        (4, None, "refused", 1),
        (1, None, "", 1),
    ],
)
def test_an_unexplained_end_of_a_driver_is_seen(
    code: int, wanted: int | None, said: str, complaints: int
) -> None:
    """Only a signal, a lost JVM or an unreachable cluster at the start explains an exit."""
    ended = Exit(at=0.0, run=0, code=code, wanted=wanted)

    assert len(allowed.check_exits([ended], [(0, said)])) == complaints


@pytest.mark.parametrize(
    ("killed_at", "complaints"), [([], 1), ([88.0], 1), ([99.0], 0), ([101.0], 1)]
)
def test_a_start_whose_jvm_was_killed_is_explained(killed_at: list[float], complaints: int) -> None:
    """Only a kill of the JVM shortly before explains a start that failed without it."""
    ended = Exit(at=100.0, run=0, code=1, wanted=None)
    said = [(0, "eos-mirror: Spark did not start: [JAVA_GATEWAY_EXITED]")]

    assert len(allowed.check_exits([ended], said, jvm_kills=killed_at)) == complaints
    assert len(allowed.check_exits([ended], [], jvm_kills=killed_at)) == 1


def test_a_stack_trace_is_seen() -> None:
    """A stack trace on stderr is a complaint."""
    assert len(allowed.check_errors([(0, "Traceback (most recent call last):"), (0, "x")])) == 1
