"""`eos-mirror offsets set` continues one partition at another offset, later or earlier."""

import signal

import pytest
from confluent_kafka.admin import NewPartitions

from eos_mirror.core.ledger import Kind
from eos_mirror.core.map_records import StartRecord, place_of
from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.kafka.topic_reader import read_compacted
from tests.mirror.command_line import offsets, shown
from tests.mirror.conftest import Site
from tests.mirror.killed_verb import verb
from tests.mirror.proofs import verify
from tests.mirror.surgery import delete_records, delete_topic, produce_values
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

COPIED, BACK = 60, 20
OLD = [b"%d" % number for number in range(COPIED)]
NEW = [b"new %d" % number for number in range(10)]
END = COPIED + 1
"""Of the copy: the records of one transaction and its marker."""


def run_once(site: Site) -> None:
    """Mirror what there is; no order may be left."""
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
        assert not running.found("topics.stopped"), "an order is left"


def mirror_records(site: Site) -> None:
    """Copy some records of the first partition, in one transaction."""
    produce_values(site.source, site.topic, OLD)
    run_once(site)


def set_to(site: Site, offset: int, *more: str) -> tuple[int, str]:
    """Set the position of the first partition; return the exit code and what is printed."""
    return offsets(site, "set", site.topic, "0", "--to", str(offset), *more)


def noted(site: Site, kind: Kind) -> list[dict[str, object]]:
    """Return the entries of the ledger of this kind."""
    entries = read_ledger(site.target.client_config(), site.flow)
    return [dict(one.details) for one in entries if one.kind is kind]


@pytest.mark.parametrize("runs", [True, False], ids=["while it runs", "between two runs"])
def test_a_position_that_is_set_back_has_records_mirrored_again(site: Site, runs: bool) -> None:
    """The copy has them twice, in order; the ledger and `verify` say so."""
    mirror_records(site)
    resumed = ("--resume", str(site.folder / "proven.json"))
    assert verify(site, *resumed)[0] == 0
    back = ("--accept-duplicates", "--reason", "a consumer lost them")
    first = f"{site.topic}-0"
    again = f"{first}: 40 offsets from 20 to 59"
    assert set_to(site, BACK, *back, "--plan") == (
        5,
        f"{again} would be mirrored again; {site.remote}-0 would have records twice\n",
    )

    if runs:
        with mirror(site.config()) as running:
            running.wait_for("ready")
            code, answer = set_to(site, BACK, *back, "--yes")
            site.wait_caught_up()
            assert running.stop() == 0, running.errors
    else:
        code, answer = set_to(site, BACK, *back, "--yes")
        run_once(site)

    assert (code, answer) == (0, f"{first}: the flow continues at 20, not at 60\n")
    produce_values(site.source, site.topic, NEW)
    run_once(site)
    assert site.values()[0] == [*OLD, *OLD[BACK:], *NEW]
    (entry,) = noted(site, Kind.REWIND)
    assert (entry["from"], entry["to"], entry["downstream"]) == (COPIED, BACK, END)
    assert (entry["duplicates"], entry["reason"]) == (True, "a consumer lost them")
    assert shown(site)[first]["map_start"] == BACK
    for arguments in ((), resumed):
        code, (topic,), text = verify(site, *arguments)
        assert code == 0, text
        assert topic["matched"] == COPIED - BACK + len(NEW), text
        assert f"mirrored again: {first} [20, 60): its position was set back; " in text
        assert f"{site.remote}-0 is compared from offset {END} on, and may have records" in text
        assert "no difference in what was compared" in text


def test_a_position_is_not_set_back_by_accident(site: Site) -> None:
    """One line names both offsets and the flag, and nothing is written."""
    mirror_records(site)
    for more in (["--plan"], ["--yes"]):
        code, answer = set_to(site, BACK, *more)
        assert (code, answer) == (
            4,
            f"eos-mirror: {site.flow} {site.topic}-0: it continues at 60, so from 20 on "
            f"{site.remote}-0 would have records twice. Add --accept-duplicates if its consumers "
            f"accept that.\n",
        )
    assert shown(site)[f"{site.topic}-0"]["next_offset"] == COPIED
    assert not noted(site, Kind.REWIND)


def test_an_emptied_copy_is_filled_again_from_any_offset(site: Site) -> None:
    """Nothing comes twice, so no flag is needed."""
    mirror_records(site)
    delete_records(site.target, site.remote, before=END)
    code, plan = set_to(site, BACK, "--plan")
    assert (code, plan.rstrip().endswith(f"{site.remote}-0 is empty")) == (5, True), plan

    code, answer = set_to(site, BACK, "--yes")

    assert code == 0, answer
    run_once(site)
    assert site.values()[0] == OLD[BACK:]
    code, (topic,), text = verify(site)
    assert code == 0, text
    assert topic["matched"] == COPIED - BACK
    assert topic["mirrored_again"] == [
        {"partition": 0, "start": BACK, "end": COPIED, "downstream": END, "has_duplicates": False}
    ]


def test_a_copy_of_which_only_markers_are_left_is_empty(site: Site) -> None:
    """No consumer can read a record of it."""
    mirror_records(site)
    delete_records(site.target, site.remote, before=COPIED)
    code, answer = set_to(site, BACK, "--yes")
    assert code == 0, answer
    run_once(site)
    assert site.values()[0] == OLD[BACK:]


def test_a_position_that_is_set_forward_skips_records(site: Site) -> None:
    """It is what `offsets skip` does: the ledger has a drop, and `verify` counts it."""
    mirror_records(site)
    produce_values(site.source, site.topic, NEW)
    code, plan = set_to(site, COPIED + 3, "--plan")
    assert code == 5, plan
    assert plan.startswith(f"{site.topic}-0: 3 offsets from 60 to 62 would not be mirrored\n  60: ")

    assert set_to(site, COPIED + 3, "--yes")[0] == 0

    run_once(site)
    assert site.values()[0] == [*OLD, *NEW[3:]]
    (entry,) = noted(site, Kind.DROP)
    assert (entry["from"], entry["to"], entry["records"]) == (COPIED, COPIED + 3, 3)
    code, _, text = verify(site)
    assert code == 0, text
    assert "explained: 3 left out, and in the ledger" in text


def test_skipped_records_are_mirrored_after_all(site: Site) -> None:
    """The ledger explains no losses before the position was set back."""
    mirror_records(site)
    produce_values(site.source, site.topic, NEW)
    assert set_to(site, COPIED + 3, "--yes")[0] == 0
    run_once(site)
    assert set_to(site, COPIED, "--accept-duplicates", "--yes")[0] == 0
    run_once(site)
    assert site.values()[0] == [*OLD, *NEW[3:], *NEW]
    code, (topic,), text = verify(site)
    assert code == 0, text
    assert (topic["matched"], "explained" in text) == (len(NEW), False), text


def test_the_new_map_has_nothing_of_the_earlier_one(site: Site) -> None:
    """Only the start record is left. It knows which partitions were added after the first start."""
    mirror_records(site)
    produce_values(site.source, site.topic, NEW)
    run_once(site)
    assert map_of(site).keys() == {0, 1, "start"}
    grown = [NewPartitions(site.topic, site.partitions + 1)]
    site.source.admin().create_partitions(grown)[site.topic].result(10)

    assert set_to(site, BACK, "--accept-duplicates", "--yes")[0] == 0

    (start,) = map_of(site).values()
    found = StartRecord.decode(start)
    assert (found.next_offset, found.downstream) == (BACK, END + len(NEW) + 1)
    assert found.partitions == site.partitions, "the new one would not begin at its start"


def map_of(site: Site) -> dict[int | str, bytes]:
    """Return the records of the offset map of the first partition."""
    topic, group = site.flow.offset_map_topic, site.flow.shadow_group
    entries = read_compacted(site.target.client_config(), topic, group=group)
    places = {key: place_of(key) for key in entries}
    first = TopicPartition(site.remote, 0)
    return {place[1]: entries[key] for key, place in places.items() if place and place[0] == first}


STEPS = {
    "the topic is stopped": ("eos_mirror.operate.moved_partition", "switch_of"),
    "the ledger has its entry": (
        "eos_mirror.operate.fenced_positions",
        "FencedPositions.begin_again",
    ),
    "the transaction is open": ("eos_mirror.kafka.transactional_producer", "KafkaProducer.commit"),
    "the position is set": ("eos_mirror.replication.ownership", "Ownership.release"),
    "the claims are released": ("eos_mirror.operate.stopped_topic", "withdraw"),
}
"""What is done when the command is killed, and where."""


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_command_is_run_again(site: Site, step: str) -> None:
    """The position is set once, and no order is left."""
    mirror_records(site)
    arguments = ("offsets", "set", str(site.config()), str(site.flow), site.topic, "0")
    to = ("--to", str(BACK), "--accept-duplicates")
    killed = verb(*arguments, *to, "--yes", killed=STEPS[step])
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert verb(*arguments, *to, "--plan").returncode == 5, "something is left to do"
    again = verb(*arguments, *to, "--yes")
    assert again.returncode == 0, again.stderr
    assert verb(*arguments, *to, "--plan").returncode == 0, "nothing is left to do"

    run_once(site)
    assert site.values()[0] == [*OLD, *OLD[BACK:]]
    code, _, text = verify(site)
    assert code == 0, text


def test_a_position_that_is_there_already_is_left_alone(site: Site) -> None:
    """There is nothing to do, and the exit code says so."""
    mirror_records(site)
    already = (0, f"{site.topic}-0: the flow continues at 60 already\n")
    assert set_to(site, COPIED, "--plan") == set_to(site, COPIED, "--yes") == already


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("0", "--to", "99", "--yes"), 2, "-0: --to 99 is outside of its log on "),
        (("0", "--to", "4", "--yes"), 2, "which can be read from 5 to 60"),
        (("9", "--to", "30", "--yes"), 2, "does not mirror"),
        (("1", "--to", "1", "--yes"), 2, "which can be read from 0 to 0"),
        (("0", "--to", "30", "--accept-duplicates"), 2, "records twice: add --yes"),
    ],
)
def test_what_cannot_be_set_is_refused(
    site: Site, arguments: tuple[str, ...], code: int, said: str
) -> None:
    """One line says why, and nothing is written."""
    mirror_records(site)
    delete_records(site.source, site.topic, before=5)
    found, answer = offsets(site, "set", site.topic, *arguments)
    assert (found, answer.count("\n")) == (code, 1), answer
    assert said in answer
    assert shown(site)[f"{site.topic}-0"]["next_offset"] == COPIED


def test_a_position_of_a_deleted_topic_is_not_set(site: Site) -> None:
    """Its offsets say nothing about the topic that was created again."""
    mirror_records(site)
    delete_topic(site.source, site.topic)
    site.source.create_topic(site.topic, site.partitions)
    produce_values(site.source, site.topic, NEW)
    code, answer = set_to(site, len(NEW), "--accept-duplicates", "--yes")
    assert (code, answer.count("\n")) == (4, 1), answer
    assert "the position is of the earlier one. `offsets reset` lets" in answer


def test_a_partition_without_a_position_is_refused(site: Site) -> None:
    """There is nothing to continue: `start.position` says where it begins."""
    run_once(site)
    gone = site.target.tool("ConsumerGroupCommand", "--delete", "--group", site.flow.shadow_group)
    assert "was successful" in gone.stdout, gone
    code, answer = set_to(site, 0, "--yes")
    assert (code, answer.count("\n")) == (2, 1), answer
    assert answer.endswith("-0: nothing was mirrored yet\n")


def test_at_least_once_has_another_command(site: Site) -> None:
    """Its positions are group offsets on the source, which Kafka's own tool sets."""
    config = site.config(transaction_producer="false")
    where = (str(config), str(site.flow), site.topic, "0")
    refused = verb("offsets", "set", *where, "--to", "0", "--yes")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
    assert "kafka-consumer-groups.sh --reset-offsets" in refused.stderr
