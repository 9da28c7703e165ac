"""`quarantine replay` appends quarantined records to their copies, each once."""

import gc
import json
import signal
import subprocess
import sys

import pytest
from confluent_kafka import Producer

from eos_mirror.core.ledger import Kind
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.operate.quarantine import Held
from eos_mirror.operate.replay import Replayer
from eos_mirror.settings.load import load_settings
from tests.mirror.command_line import offsets, quarantine
from tests.mirror.conftest import Site
from tests.mirror.killed_verb import verb
from tests.mirror.proofs import verify
from tests.mirror.refused_records import (
    AT_LEAST_ONCE,
    TOLERANT,
    assert_no_process_ended,
    configure,
    mixed,
    offer,
    values,
)
from tests.mirror.toolbox import mirror, topics_of

pytestmark = [pytest.mark.brokers, pytest.mark.long]

KEPT = [b"%d" % n for n in range(9) if n % 3 != 1]
MOVED = [b"1", b"4", b"7"]
AFTER = [b"after"]

REPLAY = "eos_mirror.operate.replay"
STEPS = {
    "the topic is stopped": (REPLAY, "switch_of"),
    "the partition is claimed": ("eos_mirror.operate.fenced_positions", "FencedPositions.append"),
    "the records are written": ("eos_mirror.kafka.ledger", "KafkaLedger.append_all"),
    "the ledger has its entry": (
        "eos_mirror.kafka.transactional_producer",
        "KafkaProducer.commit",
    ),
    "the records are committed": ("eos_mirror.replication.ownership", "Ownership.release"),
    "the claims are released": ("eos_mirror.operate.stopped_topic", "withdraw"),
}
"""What is done when the process is killed, and where it is killed."""


KILLED_AFTER_A_PORTION = """
import os, signal, sys
from eos_mirror.operate.replay import Replayer
from eos_mirror.settings.load import load_settings
(flow,) = load_settings(sys.argv[1]).flows
for _ in Replayer(flow, lambda topic: True, portion=2).run(reason=""):
    os.kill(os.getpid(), signal.SIGKILL)
"""
"""Kills the process when the first portion is committed."""


@pytest.fixture
def topic(site: Site) -> str:
    """A topic of which three records are in the quarantine; its copy accepts them now."""
    return with_refused(site, 9)


def with_refused(site: Site, count: int) -> str:
    """Return a topic with so many records, of which every third is in the quarantine."""
    name = f"{site.topic}-refused"
    site.source.create_topic(name, 1)
    offer(site, name, mixed(count))
    configure(site.source, name, "cleanup.policy=compact")
    with mirror(site.config(**TOLERANT), "--once") as running:
        assert running.wait() == 0, running.errors
    configure(site.source, name, "cleanup.policy=delete")
    configure(site.target, remote(site, name), "cleanup.policy=delete")
    return name


def remote(site: Site, topic: str) -> str:
    """Return the copy of a topic."""
    return f"{site.flow.source}.{topic}"


def mirror_more(site: Site, topic: str) -> None:
    """Mirror one more record, in another run."""
    offer(site, topic, [(b"k", AFTER[0])])
    with mirror(site.config(**TOLERANT), "--once") as running:
        assert running.wait() == 0, running.errors


def test_replayed_records_follow_the_others(site: Site, topic: str) -> None:
    """`verify` counts them, the map passes over them, and they are not replayed twice."""
    code, text = quarantine(site, "replay", "--plan")
    assert code == 5, text
    assert text.splitlines() == [f"{topic}-0 offset {n}: would be replayed" for n in (1, 4, 7)]
    assert values(site, topic) == KEPT

    code, text = quarantine(site, "replay", "--yes", "--reason", "keys are optional now")

    assert code == 0, text
    assert text.splitlines() == [f"{topic}-0 offset {n}: replayed" for n in (1, 4, 7)]
    mirror_more(site, topic)
    assert values(site, topic) == KEPT + MOVED + AFTER
    code, _, text = verify(site)
    assert code == 0, text
    assert "explained: 3 replayed from the quarantine, and in the ledger" in text
    entries = read_ledger(site.target.client_config(), site.flow)
    (entry,) = [one.details for one in entries if one.kind is Kind.REPLAY]
    assert (entry["records"], entry["reason"]) == (3, "keys are optional now")
    code, text = quarantine(site, "list", "--json")
    assert [json.loads(line)["replayed"] for line in text.splitlines()] == [True] * 3
    code, text = quarantine(site, "replay", "--yes")
    assert (code, text) == (0, f"{site.flow}: no record waits to be replayed\n")


def test_a_running_flow_continues(site: Site, topic: str) -> None:
    """The topic is stopped for the moment, by an order that is withdrawn."""
    with mirror(site.config(**TOLERANT)) as running:
        running.wait_for("ready")
        code, text = quarantine(site, "replay", "--yes")
        assert code == 0, text
        running.wait_for("topics.stopped")
        running.wait_for("topics.resumed")
        offer(site, topic, [(b"k", AFTER[0])])
        site.view.wait_caught_up(topic, remote(site, topic), partitions=1)
        assert running.stop() == 0, running.errors
        assert_no_process_ended(running)

    assert values(site, topic) == KEPT + MOVED + AFTER


def test_a_record_that_is_still_refused_stays(site: Site, topic: str) -> None:
    """The others are replayed; the exit code says that something is left."""
    configure(site.target, remote(site, topic), "cleanup.policy=compact")
    other = f"{site.topic}-other"
    site.source.create_topic(other, 1)
    offer(site, other, mixed(3))
    configure(site.source, other, "cleanup.policy=compact")
    with mirror(site.config(**TOLERANT), "--once") as running:
        assert running.wait() == 0, running.errors
    configure(site.target, remote(site, other), "cleanup.policy=delete")

    code, text = quarantine(site, "replay", "--yes")

    assert code == 1, text
    assert f"{other}-0 offset 1: replayed" in text
    assert f"{topic}-0 offset 1: not replayed: INVALID_RECORD: the record has no key" in text
    assert values(site, topic) == KEPT
    assert values(site, other) == [b"0", b"2", b"1"]


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_replay_is_run_again(site: Site, topic: str, step: str) -> None:
    """Each record is appended once, whatever was done when the process was killed."""
    arguments = ("quarantine", "replay", str(site.config()), str(site.flow), "--yes")
    killed = verb(*arguments, killed=STEPS[step])
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = verb(*arguments)
    assert again.returncode == 0, again.stderr

    mirror_more(site, topic)
    assert values(site, topic) == KEPT + MOVED + AFTER
    code, _, text = verify(site)
    assert code == 0, text


def test_more_records_than_a_portion_are_replayed(site: Site) -> None:
    """They are read and written portion by portion, in order, and memory has no more than one."""
    topic = with_refused(site, 21)
    moved = [b"%d" % n for n in range(1, 21, 3)]
    (flow,) = load_settings(str(site.config())).flows
    replayer = Replayer(flow, lambda name: name == topic, portion=2)

    alive = []
    for verdict in replayer.run(reason=""):
        assert not verdict.refusal
        alive.append(sum(isinstance(one, Held) for one in gc.get_objects()))

    assert len(alive) == len(moved)
    assert max(alive) <= 3, "a portion, and the record after it"
    assert values(site, topic)[14:] == moved
    entries = read_ledger(site.target.client_config(), site.flow)
    records = [one.details["records"] for one in entries if one.kind is Kind.REPLAY]
    assert records == [2, 2, 2, 1]
    assert not replayer.plan()
    code, _, text = verify(site)
    assert code == 0, text
    assert "explained: 7 replayed from the quarantine, and in the ledger" in text


def test_a_replay_that_is_killed_between_two_portions_is_run_again(site: Site) -> None:
    """The first portion is not repeated, and the others follow."""
    topic = with_refused(site, 21)
    moved = [b"%d" % n for n in range(1, 21, 3)]
    start = [sys.executable, "-c", KILLED_AFTER_A_PORTION, str(site.config())]
    killed = subprocess.run(start, capture_output=True, text=True, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert values(site, topic)[14:] == moved[:2]

    code, text = quarantine(site, "replay", "--yes")

    assert code == 0, text
    assert text.splitlines() == [
        f"{topic} was left stopped by an interrupted replay; it is started",
        *(f"{topic}-0 offset {n}: replayed" for n in range(7, 21, 3)),
    ]
    assert values(site, topic)[14:] == moved
    code, _, text = verify(site)
    assert code == 0, text


def test_at_least_once_needs_no_replay(site: Site, topic: str) -> None:
    """One line says why, with exit code 2."""
    arguments = ("quarantine", "replay", str(site.config(**AT_LEAST_ONCE)), str(site.flow), "--yes")
    done = verb(*arguments)

    assert done.returncode == 2, done.stderr
    assert "in at-least-once mode a copy has no exact map" in done.stderr
    assert values(site, topic) == KEPT


def test_the_mode_that_was_noted_decides(site: Site) -> None:
    """Positions of another mode are not those of the copies."""
    with mirror(site.config(**TOLERANT, **AT_LEAST_ONCE), "--once") as running:
        assert running.wait() == 0, running.errors

    flow = (str(site.config()), str(site.flow))
    for arguments in (
        ("quarantine", "replay", *flow),
        ("offsets", "skip", *flow, site.topic, "0", "--to", "1"),
    ):
        done = verb(*arguments, "--yes")
        assert done.returncode == 4, done.stderr
        assert "mirrored at-least-once so far" in done.stderr


def test_a_record_that_was_mirrored_again_is_not_replayed(site: Site, topic: str) -> None:
    """After `offsets reset` it is in the copy: the offset map says so."""
    code, text = offsets(site, "reset", topic, "--yes")
    assert code == 0, text
    code, text = quarantine(site, "replay", "--plan")
    assert code == 1, text
    assert "not replayed: its partition has no position" in text or "does not mirror" in text
    with mirror(site.config(**TOLERANT), "--once") as running:
        assert running.wait() == 0, running.errors

    code, text = quarantine(site, "replay", "--yes")

    assert code == 1, text
    assert text.count("not replayed: it is in the copy: its topic was mirrored again") == 3
    assert sorted(values(site, topic), key=lambda one: int(one or b"0")) == [
        b"%d" % n for n in range(9)
    ]


def test_a_topic_that_is_not_mirrored_any_more_is_left_alone(site: Site, topic: str) -> None:
    """Its records are named, and nothing is stopped."""
    config = site.config(topics_exclude=topic)
    done = verb("quarantine", "replay", str(config), str(site.flow), "--yes")

    assert done.returncode == 1, done.stderr
    assert done.stdout.count("not replayed: the flow does not mirror its partition now") == 3
    assert site.flow.desired_topic not in topics_of(site.target)


def test_notes_behind_an_open_transaction_are_waited_for(site: Site, topic: str) -> None:
    """Such a note may say that a record was replayed; without it, that would be repeated."""
    queue = site.flow.quarantine_topic
    other = Producer({**site.target.client_config(), "transactional.id": f"other-{site.topic}"})
    other.init_transactions(20)
    other.begin_transaction()
    other.produce(queue, b"", partition=0)
    other.flush(10)

    code, text = quarantine(site, "replay", "--yes")
    other.abort_transaction(20)

    assert code == 1, text
    assert f"a transaction is open on {queue}-0" in text
    assert values(site, topic) == KEPT
    code, text = quarantine(site, "replay", "--yes")
    assert code == 0, text
    assert values(site, topic) == KEPT + MOVED


def test_replayed_records_fit_a_copy_with_a_small_limit(site: Site) -> None:
    """Each record is a batch of its own."""
    name = f"{site.topic}-small"
    site.source.create_topic(name, 1)
    records = [(None, b"%02d" % n + b"x" * 15_000) for n in range(40)]
    offer(site, name, records)
    configure(site.source, name, "cleanup.policy=compact")
    with mirror(site.config(**TOLERANT), "--once") as running:
        assert running.wait() == 0, running.errors
    configure(site.source, name, "cleanup.policy=delete")
    configure(site.target, remote(site, name), "cleanup.policy=delete,max.message.bytes=20000")

    code, text = quarantine(site, "replay", "--yes")

    assert code == 0, text
    assert values(site, name) == [value for _, value in records]
