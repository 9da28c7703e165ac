"""The outbox, and a broker that checks sequences and answers with errors at every place."""

import random
import time

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing.waiting import wait_until
from eos_mirror.wire.errors import (
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_EPOCH,
    MESSAGE_TOO_LARGE,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    REQUEST_TIMED_OUT,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    Malformed,
    Refused,
    Unanswered,
    Unreachable,
    WireError,
)
from eos_mirror.wire.messages import METADATA, PRODUCE_9
from eos_mirror.wire.outbox import AGAIN, Outbox
from eos_mirror.wire.partition_queue import IN_FLIGHT
from tests.wire import produce_broker as changes
from tests.wire.filler import COPIES, WITHIN, Filler, writing
from tests.wire.produce_broker import Change, ProduceBroker

SHORT_S = 0.3


def open_partition(outbox: Outbox, filler: Filler) -> None:
    """Have the first batch of the transaction acknowledged, so that others are pipelined."""
    filler.put(2)
    outbox.drain(until=time.monotonic() + WITHIN.total_seconds())


def drain(outbox: Outbox) -> WireError | None:
    """Send everything, and return the error, if there is one."""
    try:
        outbox.drain(until=time.monotonic() + WITHIN.total_seconds())
    except WireError as exc:
        return exc
    return None


def assert_sound(target: ProduceBroker, partition: TopicPartition = COPIES) -> list[int]:
    """Assert that a log has no gap, no repetition and nothing sent twice; return its records."""
    written = target.written[partition].offsets
    assert written == list(range(len(written)))
    assert not target.sent_twice
    return written


CODES = sorted(AGAIN | {OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH})


@pytest.mark.parametrize("place", range(1 + IN_FLIGHT + 2))
@pytest.mark.parametrize("code", CODES)
def test_an_error_at_any_place_of_a_pipeline_keeps_the_order(code: int, place: int) -> None:
    """Every batch is stored once, in order, or the outbox ends with an error and a prefix."""
    with writing() as (outbox, target, _):
        filler = Filler(outbox)
        target.written[COPIES].codes[place] = code
        if place:
            open_partition(outbox, filler)
            target.hold = IN_FLIGHT
        filler.put(*[3] * (IN_FLIGHT + 3))
        fault = drain(outbox)
        written = assert_sound(target)
        assert code in target.written[COPIES].answered.values() or code in AGAIN
        if fault is None:
            assert written == list(range(filler.next_offset))
            book = outbox.books[COPIES]
            assert (book.first, book.last) == (0, filler.next_offset - 1)
        if code in AGAIN - {NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT}:
            assert fault is None


@pytest.mark.parametrize("seed", range(12))
def test_errors_at_random_places_keep_the_order(seed: int) -> None:
    """The same for several partitions and transactions, with errors at random."""
    wander(seed, transactions=4)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 200))
def test_errors_at_random_places_keep_the_order_for_longer(seed: int) -> None:
    """The same, for longer."""
    wander(seed, transactions=15)


def wander(seed: int, *, transactions: int) -> None:
    """Write transactions to a broker that refuses batches at random."""
    chosen = random.Random(seed)
    codes = [CONCURRENT_TRANSACTIONS, NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS]
    if chosen.random() < 0.5:
        codes += [NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT]
    partitions = [TopicPartition("copies", number) for number in range(3)]
    with writing(3) as (outbox, target, writer):
        fillers = {p: Filler(outbox, p) for p in partitions}
        for _ in range(transactions):
            for p in partitions:
                log = target.written[p]
                for _ in range(chosen.randrange(4)):
                    log.codes[log.arrived + chosen.randrange(10)] = chosen.choice(codes)
            for _ in range(chosen.randrange(1, 12)):
                fillers[chosen.choice(partitions)].put(chosen.randrange(1, 5))
                if chosen.random() < 0.5:
                    outbox_pump(outbox)
            if drain(outbox) is not None:
                break
            for p in partitions:
                assert assert_sound(target, p) == list(range(fillers[p].next_offset))
            writer.epoch += 1
            outbox.begin(new_epoch=True)
        for p in partitions:
            assert_sound(target, p)


def outbox_pump(outbox: Outbox) -> None:
    """Pump; an error is met again when the outbox is drained."""
    try:
        outbox.pump()
    except WireError:
        assert drain(outbox) is not None, "an error was forgotten"


def test_a_batch_before_a_refused_one_is_not_forgotten() -> None:
    """Batches that the broker could not store now arrive, although a later one was refused."""
    for refused_at in range(2, 5):
        with writing() as (outbox, target, _):
            filler = Filler(outbox)
            open_partition(outbox, filler)
            target.written[COPIES].codes |= {1: NOT_ENOUGH_REPLICAS, refused_at: MESSAGE_TOO_LARGE}
            target.hold = IN_FLIGHT
            filler.put(*[3] * IN_FLIGHT)
            assert drain(outbox) is None
            refusal = outbox.refusals[COPIES]
            written = assert_sound(target)
            assert refusal.first == len(written) == 2 + 3 * (refused_at - 1)
            assert outbox.unacknowledged_bytes == 0

            outbox.begin(new_epoch=False)
            filler.next_offset = refusal.first
            filler.put(1, 1, 1)
            assert drain(outbox) is None
            assert len(assert_sound(target)) == filler.next_offset


def test_the_first_refused_batch_counts() -> None:
    """If a batch that is sent again is refused itself, the refusal is that of the first one."""
    with writing() as (outbox, target, _):
        filler = Filler(outbox)
        open_partition(outbox, filler)
        target.written[COPIES].codes |= {
            1: NOT_ENOUGH_REPLICAS,
            3: MESSAGE_TOO_LARGE,
            IN_FLIGHT + 1: MESSAGE_TOO_LARGE,
        }
        target.hold = IN_FLIGHT
        filler.put(*[3] * IN_FLIGHT)
        assert drain(outbox) is None
        assert outbox.refusals[COPIES].first == len(assert_sound(target)) == 2


# ---------------------------------------------------------------------- no answer


@pytest.mark.parametrize("place", range(IN_FLIGHT))
@pytest.mark.parametrize("change", [changes.lost, changes.reset, changes.malformed])
def test_after_an_unknown_outcome_nothing_is_sent_any_more(change: Change, place: int) -> None:
    """An answer that is lost, cut off or malformed ends the outbox; no batch is sent twice."""
    with writing(within_s=SHORT_S) as (outbox, target, _):
        filler = Filler(outbox)
        open_partition(outbox, filler)
        target.change(PRODUCE_9.key, *[None] * place, change)
        filler.put(*[3] * (IN_FLIGHT + 3))
        fault = drain(outbox)
        assert isinstance(fault, Unanswered | Malformed)
        seen = len(target.broker.seen)
        for _ in range(3):
            with pytest.raises(WireError):
                outbox.pump()
            assert drain(outbox) is fault
        assert len(target.broker.seen) == seen
        assert not outbox.is_empty
        assert_sound(target)


def test_a_doubled_answer_ends_the_outbox() -> None:
    """An answer that arrives twice is not taken for that of the next request."""
    with writing(within_s=SHORT_S) as (outbox, target, _):
        filler = Filler(outbox)
        open_partition(outbox, filler)
        target.change(PRODUCE_9.key, changes.doubled)
        filler.put(*[3] * (IN_FLIGHT + 3))
        assert isinstance(drain(outbox), Malformed)
        assert_sound(target)


@pytest.mark.parametrize("change", [changes.without_partitions])
def test_an_answer_without_a_partition_is_malformed(change: Change) -> None:
    """A batch without an answer is not taken for acknowledged."""
    with writing(within_s=SHORT_S) as (outbox, target, _):
        target.change(PRODUCE_9.key, change)
        Filler(outbox).put(3)
        assert isinstance(drain(outbox), Malformed)
        assert not outbox.is_empty


# ---------------------------------------------------------------------- topics and leaders


def test_a_topic_that_was_created_again_is_not_written() -> None:
    """One incarnation writes to one topic of a name, whatever metadata says later."""
    with writing() as (outbox, target, _):
        filler = Filler(outbox)
        open_partition(outbox, filler)
        target.broker.topics["copies"] = b"another topic id", 1
        target.written[b"another topic id", 0] = changes.Written()
        target.written[COPIES].codes[1] = NOT_LEADER_OR_FOLLOWER
        filler.put(3, 3)
        fault = drain(outbox)
        assert isinstance(fault, Refused)
        assert fault.code == UNKNOWN_TOPIC_ID
        assert not target.written[b"another topic id", 0].arrived


def test_a_topic_that_vanishes_between_two_requests_is_waited_for() -> None:
    """While a broker does not know a topic, its batches wait: no other error, nothing lost."""
    with writing(2) as (outbox, target, _):
        other = TopicPartition("copies", 1)
        fillers = [Filler(outbox), Filler(outbox, other)]
        open_partition(outbox, fillers[0])
        known = target.broker.topics.pop("copies")
        target.written[COPIES].codes[1] = UNKNOWN_TOPIC_OR_PARTITION
        for one in fillers:
            one.put(3, 3)
        asked = len(target.broker.requests(METADATA))

        def pumped() -> bool:
            outbox.pump()
            return len(target.broker.requests(METADATA)) > asked + 2

        wait_until(pumped, within=WITHIN, what="the topic to be asked for")
        target.broker.topics["copies"] = known
        assert drain(outbox) is None
        for p, one in zip((COPIES, other), fillers, strict=True):
            assert assert_sound(target, p) == list(range(one.next_offset))


def test_a_partition_without_a_leader_does_not_break_the_others() -> None:
    """Metadata that loses a topic while another partition of it is sent is no crash."""
    with writing(2) as (outbox, target, _):
        filler = Filler(outbox)
        open_partition(outbox, filler)
        beyond = Filler(outbox, TopicPartition("copies", 7))
        known = target.broker.topics.pop("copies")
        beyond.put(1)
        filler.put(3, 3)
        outbox.pump()
        target.broker.topics["copies"] = known[0], 8
        for number in range(8):
            target.written.setdefault(("copies", number), changes.Written())
            target.written.setdefault((known[0], number), target.written["copies", number])
        assert drain(outbox) is None
        assert assert_sound(target) == list(range(filler.next_offset))


def test_a_deadline_ends_a_flush_while_a_batch_is_refused_again_and_again() -> None:
    """Answers that allow another attempt do not keep a flush longer than it may last."""
    with writing() as (outbox, target, _):
        target.written[COPIES].codes |= dict.fromkeys(range(10_000), CONCURRENT_TRANSACTIONS)
        Filler(outbox).put(3)
        with pytest.raises(Unreachable, match="copies-0"):
            outbox.drain(until=time.monotonic() + SHORT_S)
        assert target.written[COPIES].arrived < 50, "there was no pause"


def test_a_mute_does_not_hold_up_a_pump() -> None:
    """While the broker does not read, nothing sleeps and nothing is sent (KIP-219)."""
    with writing() as (outbox, target, _):
        filler = Filler(outbox)

        def throttled(_: object, __: object, answer: dict[str, object]) -> dict[str, object]:
            return {**answer, "throttle_time_ms": 30_000}

        target.change(PRODUCE_9.key, throttled)
        open_partition(outbox, filler)
        filler.put(3)
        for _ in range(5):
            outbox.pump()
        assert target.written[COPIES].arrived == 1
        with pytest.raises(Unreachable):
            outbox.drain(until=time.monotonic() + SHORT_S)
