"""A lagging task commits less often when its commits take longer."""

from dataclasses import replace

import pytest

from tests.engine.source_cluster import CHUNK_RECORDS
from tests.engine.stage import BOUNDARY, Stage

pytestmark = pytest.mark.usefixtures("one_core")

POLL_S = 0.03
TRANSACTIONS = 50
STEPS = 1_000
"""Far more than one transaction takes."""


def polls_a_transaction(*, commit_s: float, slow_polls: int = 0) -> int:
    """
    Return the polls per transaction of a lagging task that has learned how long commits take.

    Args:
        slow_polls: Empty polls after each poll that returns records.
    """
    stage = Stage(boundary=replace(BOUNDARY, max_records=10_000, max_bytes=1_000_000))
    process = stage.start(0)
    polls = [0]
    while len(polls) <= TRANSACTIONS and not process.is_over:
        match process.actor.at:
            case "poll":
                for partition in stage.partitions:
                    for _ in range(CHUNK_RECORDS):
                        stage.produce(partition)
                stage.source.is_slow = bool(polls[-1] % (slow_polls + 1))
                stage.clock.advance(POLL_S)
                polls[-1] += 1
            case "end":
                stage.clock.advance(commit_s)
                polls.append(0)
        process.actor.step()
    assert process.actor.error is None
    stage.close()
    return polls[-2]


def test_behind_a_transaction_grows_with_its_commit() -> None:
    """A lagging task spends 128 times as long on records as on their commit."""
    assert polls_a_transaction(commit_s=0.0005) * POLL_S == pytest.approx(0.1, abs=2 * POLL_S)
    assert polls_a_transaction(commit_s=0.00625) * POLL_S == pytest.approx(0.8, abs=2 * POLL_S)


def test_behind_a_transaction_does_not_end_while_more_is_on_its_way() -> None:
    """An empty poll does not end a transaction while more records are in flight."""
    found = polls_a_transaction(commit_s=0.00625, slow_polls=1)

    assert found * POLL_S == pytest.approx(0.8, abs=3 * POLL_S)


def test_when_nothing_is_on_its_way_a_transaction_ends() -> None:
    """A transaction ends when nothing is in flight, however young it is."""
    stage = Stage()
    process = stage.start(0)
    stage.produce(stage.partitions[0])
    began = stage.clock()
    for _ in range(STEPS):
        if process.actor.at == "end":
            break
        process.actor.step()
    assert process.actor.at == "end"
    assert stage.clock() - began < BOUNDARY.interval_s
    stage.close()
