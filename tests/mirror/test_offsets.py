"""`eos-mirror offsets` shows positions, and gets a partition past records that cannot be copied."""

import re
import signal

import pytest

from eos_mirror.core.desired import retry_key
from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.testing.checker import read_topic
from tests.mirror.command_line import offsets, shown
from tests.mirror.conftest import Site
from tests.mirror.killed_verb import verb
from tests.mirror.proofs import verify
from tests.mirror.surgery import delete_records, produce_values
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

COPIED, GONE, LEFT = 20, 30, 10
LATER = [b"left %d" % number for number in range(LEFT)]


def lose_records(site: Site) -> None:
    """Copy some records of each partition; then retention deletes the next ones of the first."""
    values = [b"%d" % number for number in range(COPIED)]
    for number in range(site.partitions):
        produce_values(site.source, site.topic, values, partition=number)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    produce_values(site.source, site.topic, [b"gone"] * GONE + LATER)
    delete_records(site.source, site.topic, before=COPIED + GONE)


@pytest.mark.parametrize("runs", [True, False], ids=["while it runs", "between two runs"])
def test_records_that_are_gone_are_skipped(site: Site, runs: bool) -> None:
    """The partition stopped; it continues after them, and the ledger and `verify` say why."""
    lose_records(site)
    where, to = (site.topic, "0"), str(COPIED + GONE)
    code, answer = offsets(site, "skip", *where, "--to", to, "--plan")
    assert (code, answer) == (
        5,
        f"{site.topic}-0: 30 offsets from 20 to 49 would not be mirrored\n"
        "  the source has no record there that can be read\n",
    )
    skip = ("skip", *where, "--to", to, "--yes", "--reason", "expired in the outage")

    if runs:
        with mirror(site.config()) as running:
            running.wait_for("partition.stopped", partition=f"{site.topic}-0")
            code, answer = offsets(site, *skip)
            assert code == 0, answer
            assert "withdrawn" in running.wait_for("topics.resumed")["reason"]
            (written,) = read_topic(site.target.client_config(), site.flow.desired_topic)
            retried = retry_key(re.escape(site.topic)).encode()
            assert retried in {one.key for one in written}, "it waits for its next regular try"
            running.wait_for("partition.resumed", partition=f"{site.topic}-0")
            site.wait_caught_up()
            assert running.stop() == 0, running.errors
    else:
        code, answer = offsets(site, *skip)
        assert code == 0, answer
        with mirror(site.config(), "--once") as running:
            assert running.wait() == 0, running.errors
            assert not running.found("topics.resumed"), "no order is left"

    assert answer == f"{site.topic}-0: 30 offsets from 20 to 49 skipped; the flow continues at 50\n"
    copy = site.values()
    assert copy[0] == [b"%d" % number for number in range(COPIED)] + LATER
    assert [len(one) for one in copy[1:]] == [COPIED] * (site.partitions - 1)
    entries = read_ledger(site.target.client_config(), site.flow)
    drop = next(one.details for one in entries if one.kind is Kind.DROP)
    assert (drop["from"], drop["to"], drop["reason"]) == (20, 50, "expired in the outage")
    code, _, text = verify(site)
    assert code == 0, text


SKIP_STEPS = {
    "the topic is stopped": ("eos_mirror.operate.moved_partition", "switch_of"),
    "the ledger has its entry": ("eos_mirror.operate.fenced_positions", "FencedPositions.move"),
    "the position is moved": ("eos_mirror.replication.ownership", "Ownership.release"),
    "the claims are released": ("eos_mirror.operate.stopped_topic", "withdraw"),
}
"""What is done when the command is killed, and where."""


@pytest.mark.parametrize("step", SKIP_STEPS)
def test_a_killed_skip_is_run_again(site: Site, step: str) -> None:
    """The partition continues at the offset, and no order is left."""
    lose_records(site)
    arguments = ("offsets", "skip", str(site.config()), str(site.flow), site.topic, "0")
    to = ("--to", str(COPIED + GONE), "--yes")
    killed = verb(*arguments, *to, killed=SKIP_STEPS[step])
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = verb(*arguments, *to)
    assert again.returncode == 0, again.stderr

    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
        assert not running.found("topics.stopped"), "an order is left"
    assert site.values()[0] == [b"%d" % number for number in range(COPIED)] + LATER


def test_records_that_exist_are_skipped_on_purpose(site: Site) -> None:
    """`verify` counts them as explained; the offset map has no translation for them."""
    lose_records(site)
    end = COPIED + GONE + len(LATER)
    code, plan = offsets(site, "skip", site.topic, "0", "--to", str(end), "--plan")
    assert code == 5, plan
    assert f"\n  {COPIED + GONE}: 20" in plan, "the first one that is left"
    assert f" UTC, key none, value {len(LATER[0])} bytes\n" in plan
    first = offsets(site, "skip", site.topic, "0", "--to", str(COPIED + GONE), "--yes")
    assert first[0] == 0, first[1]
    again = offsets(site, "skip", site.topic, "0", "--to", str(COPIED + GONE + 1), "--yes")
    assert again[0] == 0, again[1]
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors

    assert site.values()[0][COPIED:] == LATER[1:]
    code, topics, text = verify(site)
    assert code == 0, text
    assert "left out, and in the ledger" in text, (topics, text)


def test_the_offsets_of_a_flow_are_shown(site: Site) -> None:
    """Before the first run, while a task mirrors, and as a table."""
    produce_values(site.source, site.topic, [b"x"] * COPIED)
    first = TopicPartition(site.topic, 0)
    before = shown(site)[str(first)]
    assert (before["next_offset"], before["end"], before["lag"]) == (None, COPIED, COPIED)
    assert before["transactional_id"] is None
    with mirror(site.config()) as running:
        site.wait_caught_up()
        now = shown(site)[str(first)]
        assert (now["next_offset"], now["stable_end"], now["lag"]) == (COPIED, COPIED, 0)
        assert now["map_start"] == 0
        assert str(now["transactional_id"]).startswith("eos-mirror.")
        code, table = offsets(site, "show", "--topics", site.topic)
        assert running.stop() == 0, running.errors
    lines = table.splitlines()
    assert code == 0
    assert (
        " ".join(lines[0].split()) == "partition next offset stable end end lag map from written by"
    )
    assert lines[1].split()[:6] == [str(first), "20", "20", "20", "0", "0"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("0", "--to", "20", "--yes"), 2, "continues at 20 already"),
        (("0", "--to", "99", "--yes"), 2, "ends at 60; --to must not be larger"),
        (("9", "--to", "30", "--yes"), 2, "does not mirror"),
        (("0", "--to", "50"), 2, "add --yes"),
    ],
)
def test_what_cannot_be_skipped_is_refused(
    site: Site, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """One line says why, and nothing is written."""
    lose_records(site)
    found, answer = offsets(site, "skip", site.topic, *arguments)
    assert (found, answer.count("\n")) == (code, 1), answer
    assert said in answer
    assert shown(site)[f"{site.topic}-0"]["next_offset"] == COPIED
