"""The search for a refused record finds it, and batches fit the limits of a topic."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.handlers import HandledRun
from eos_mirror.core.records import DecodedRun, TopicPartition
from eos_mirror.core.suspects import (
    MOST_BATCHES,
    NARROWED_BY,
    BatchCutter,
    BatchLimit,
    Refusal,
    Suspect,
    batch_limit,
    narrowed,
    tried_again,
)
from eos_mirror.core.topic_limits import (
    BATCH_HEADER_BYTES,
    SenderLimits,
    TopicLimits,
    room_of,
)

SENDER = SenderLimits(batch_records=64)
ROOMY = TopicLimits(max_message_bytes=1_048_588)


def a_run(first: int, sizes: list[int]) -> DecodedRun:
    """Return a run of records with values of these sizes."""
    return DecodedRun(
        partition=TopicPartition("orders", 0),
        offsets=list(range(first, first + len(sizes))),
        timestamps=[1] * len(sizes),
        keys=[None] * len(sizes),
        values=[b"x" * size for size in sizes],
        headers=[None] * len(sizes),
        leader_epoch=None,
        size_bytes=sum(sizes),
    )


def batches(limit: BatchLimit, *runs: DecodedRun) -> dict[int, list[int]]:
    """Cut the runs into batches, and return the offsets by batch number."""
    cutter = BatchCutter(limit)
    found: dict[int, list[int]] = {}
    for run in runs:
        for number, part in cutter.cut(run):
            found.setdefault(number, []).extend(part.offsets)
    return found


@given(st.integers(1, 300), st.data())
def test_a_search_ends_at_the_refused_record(count: int, data: st.DataObject) -> None:
    """The search finds the refused record in at most five refusals."""
    bad = data.draw(st.integers(0, count - 1))
    suspect = narrowed(Refusal(code="POLICY_VIOLATION", reason=""), (0, count), SENDER)
    steps = 1
    while not suspect.refused:
        limit = batch_limit(ROOMY, suspect, SENDER)
        assert limit is not None
        found = batches(limit, a_run(suspect.first, [1] * (suspect.end - suspect.first)))
        holding = next(offsets for offsets in found.values() if bad in offsets)
        refusal = Refusal(
            code="POLICY_VIOLATION",
            reason="",
            first=holding[0],
            end=holding[-1] + 1,
            records=len(holding),
        )
        suspect = narrowed(refusal, (0, count), SENDER)
        steps += 1
        assert steps <= 5, suspect

    assert suspect.refused == (bad,)


def test_records_that_the_broker_named_need_no_search() -> None:
    """Records that the broker named (KIP-467) are known without a search."""
    refusal = Refusal(
        code="INVALID_RECORD", reason="", first=10, end=20, records=10, named=(12, 15)
    )

    assert narrowed(refusal, (0, 20), SENDER).refused == (12, 15)


def test_a_batch_that_was_too_large_is_cut_by_size_first() -> None:
    """A batch that was too large blames no record, because the limit may have been lowered."""
    suspect = narrowed(Refusal(code="MSG_SIZE_TOO_LARGE", reason=""), (0, 500), SENDER)

    assert (suspect.max_records, suspect.refused) == (SENDER.batch_records, ())


def test_what_is_tried_again_has_batches_of_its_own() -> None:
    """A retried record has its own batch, and is refused only if the target refuses it again."""
    suspect = Suspect(first=0, end=9, max_records=4, refused=(3, 5), code="X", reason="y")

    again = tried_again(suspect)

    assert (again.first, again.end, again.max_records, again.refused) == (3, 6, 1, ())


def test_a_topic_that_takes_any_batch_needs_no_cutting() -> None:
    """Batches are not cut for a topic that accepts any batch, so the hot path is unchanged."""
    assert batch_limit(ROOMY, None, SENDER) is None
    assert batch_limit(None, None, SENDER) is None
    assert batch_limit(TopicLimits(max_message_bytes=700_000), None, SENDER) is not None


@given(
    st.lists(st.lists(st.integers(0, 400), min_size=1, max_size=30), min_size=1, max_size=5),
    st.integers(200, 1_000),
)
def test_batches_fit_and_hold_everything_in_order(sizes: list[list[int]], limit: int) -> None:
    """
    Batches stay within the limit and keep every record in order, up to the most batches.

    A record that is larger than the limit is alone in its batch.
    """
    runs, first = [], 0
    for run_sizes in sizes:
        runs.append(a_run(first, run_sizes))
        first += len(run_sizes)
    flat = [size for run_sizes in sizes for size in run_sizes]

    found = batches(BatchLimit(max_bytes=limit, max_records=64), *runs)

    offsets = [offset for numbered in sorted(found) for offset in found[numbered]]
    assert offsets == list(range(len(offsets)))
    assert len(offsets) == len(flat) or len(found) == MOST_BATCHES
    for held in found.values():
        room = BATCH_HEADER_BYTES + sum(room_of(None, b"x" * flat[o], None) for o in held)
        assert room <= limit or len(held) == 1


def test_copies_of_one_record_are_in_one_transaction() -> None:
    """There are more batches then: a position between two copies would lose or repeat one."""
    copies = HandledRun(
        partition=TopicPartition("orders", 0),
        offsets=[n // 7 for n in range(10 * MOST_BATCHES)],
        timestamps=[1] * 10 * MOST_BATCHES,
        keys=[None] * 10 * MOST_BATCHES,
        values=[b"x" * 100] * 10 * MOST_BATCHES,
        headers=[None] * 10 * MOST_BATCHES,
        leader_epoch=None,
        size_bytes=0,
    )

    found = batches(BatchLimit(max_bytes=500, max_records=64), copies)

    counts = Counter(offset for held in found.values() for offset in held)
    assert set(counts.values()) == {7}
    assert MOST_BATCHES <= len(found) < MOST_BATCHES + 7


def test_a_suspected_stretch_shares_no_batch_with_what_lies_before_it() -> None:
    """A suspected stretch shares no batch with earlier records, so a refusal says more."""
    suspect = Suspect(first=10, end=20, max_records=4, code="X", reason="")
    limit = BatchLimit(max_bytes=10_000, max_records=64, suspect=suspect)

    found = batches(limit, a_run(0, [1] * 15), a_run(15, [1] * 15))

    assert found[1] == list(range(10))
    assert found[2] == [10, 11, 12, 13]
    assert found[4] == [18, 19, *range(20, 30)] or found[4] == [18, 19]


def test_a_step_narrows_by_much() -> None:
    """Each step narrows the search by a large factor, because it costs a new incarnation."""
    refusal = Refusal(code="X", reason="", first=0, end=64, records=64)

    assert narrowed(refusal, (0, 64), SENDER).max_records == 64 // NARROWED_BY
