"""Fetch answers that something changed, from the socket to the records."""

import random
import time
from collections import Counter
from typing import Any

import pytest

from eos_mirror.core.records import Position
from eos_mirror.errors import PartitionStopped
from eos_mirror.ports import Polled
from eos_mirror.wire.batches import Batch
from eos_mirror.wire.cluster import Purpose
from eos_mirror.wire.connection import wait_for
from eos_mirror.wire.errors import (
    Refused,
)
from eos_mirror.wire.fetcher import Fetcher
from eos_mirror.wire.messages import FETCH
from eos_mirror.wire.own_records import Record
from eos_mirror.wire.records import decoded
from tests.wire.examples import rows_in
from tests.wire.hostile import mutated
from tests.wire.reader import ORDERS, WITHIN, filled, reading
from tests.wire.scripted_broker import Asked, Peer, framed


def read_changed(seed: int, rounds: int) -> Counter[str]:
    """Read logs through answers that something changed; return how often each outcome was met."""
    chosen, outcomes = random.Random(seed), Counter[str]()

    def change(peer: Peer, asked: Asked, answer: dict[str, Any]) -> None:
        body = mutated(FETCH.answer.encode(answer), chosen)
        peer.send(framed(asked.number, body, api=FETCH))

    for _ in range(rounds):
        with reading() as (fetcher, source):
            log = filled(source, ORDERS)
            known = [row[1:] for one in log.batches for row in rows_of([one])]
            source.changes.extend([change] * 2)
            fetcher.start({ORDERS: Position(0)})
            outcome, found = "", []
            ends = time.monotonic() + WITHIN.total_seconds()
            while not outcome and time.monotonic() < ends:
                polled, outcome = one_poll(fetcher)
                for run in polled.runs:
                    try:
                        found += [row[1:] for row in rows_in(run.decoded())]
                    except PartitionStopped:
                        outcome = "corrupt when it is decoded"
                if len(found) >= len(known):
                    outcome = outcome or "all records"
            # no checksum covers the offset of a batch, so records may be missing; none is wrong
            assert [known.index(row) for row in found] == sorted({*map(known.index, found)})
            assert outcome, "neither records, nor an error"
            outcomes[outcome] += 1
    return outcomes


def one_poll(fetcher: Fetcher) -> tuple[Polled, str]:
    """Take one answer; return it, and how reading ended, if it did."""
    try:
        polled = fetcher.take() or Polled()
    except Refused:
        return Polled(), "refused"
    if polled.faults:
        return polled, "a fault of the partition"
    if any(at > 5 for at in polled.ends.values()):
        return polled, "an end"
    if fetcher._cluster.muted_until(1, Purpose.FETCH) > time.monotonic():  # noqa: SLF001
        return polled, "muted"
    wait_for(fetcher.connections, until=time.monotonic() + 0.005)
    return polled, ""


def rows_of(batches: list[Batch]) -> list[Record]:
    """Return the records of batches."""
    run = decoded(ORDERS, batches, next_offset=0)
    return [] if run is None else rows_in(run)


def test_changed_answers_end_in_the_right_records_or_a_fault() -> None:
    """Bytes that something changed between the broker and us never become wrong records."""
    outcomes = read_changed(1, rounds=15)
    assert outcomes["an end"] + outcomes["all records"] > 3, outcomes
    assert len(outcomes) > 2, outcomes


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_changed_answers_end_in_the_right_records_or_a_fault(seed: int) -> None:
    """The same, with other seeds, and more often."""
    read_changed(seed, rounds=100)
