"""
Situations of a running mirror on shared clusters, one function each.

Each breaks something, yields what an operator then sees, repairs it, and yields what is seen after
the repair. The names of the functions are those of the tests.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from confluent_kafka import Producer

from eos_mirror.testing import wait_until
from tests.mirror.refused_records import WITHIN, configure, offer
from tests.mirror.situation_stage import WELL, Seen, Stage
from tests.mirror.surgery import delete_records, delete_topic, foreign_writer, produce_values
from tests.mirror.toolbox import mirror, produce

Situation = Callable[[Stage], Iterator[Seen]]

FAILED: Final = {"state": "failed", "partition": "failed", "is_ready": False}
LIMIT: Final = "max.message.bytes"


def stopped(cause: str, words: str, *, lag: int = 0) -> Seen:
    """Return what is seen of a partition that stopped."""
    return Seen(
        state="failed",
        partition="failed",
        is_ready=False,
        cause=cause,
        words=words,
        event="partition.stopped",
        fields={"cause": cause},
        lag=lag,
    )


# ---------------------------------------------------------------------- the copy refuses records


def a_record_is_too_large(stage: Stage) -> Iterator[Seen]:
    """The limit of the copy is smaller; it is raised."""
    configure(stage.site.target, stage.site.remote, f"{LIMIT}=2000")
    offer(stage.site, stage.site.topic, [(b"k", b"x" * 5_000), (b"k", b"after")])
    yield stopped("RecordRefused", "2000", lag=2)
    configure(stage.site.target, stage.site.remote, f"{LIMIT}=20000")
    yield WELL


def the_limit_is_lowered_under_the_usual_records(stage: Stage) -> Iterator[Seen]:
    """Records of a size that was mirrored before are refused now."""
    offer(stage.site, stage.site.topic, [(b"k", b"x" * 3_000)])
    stage.site.wait_caught_up()
    configure(stage.site.target, stage.site.remote, f"{LIMIT}=1000")
    offer(stage.site, stage.site.topic, [(b"k", b"x" * 3_000)])
    yield stopped("RecordRefused", "1000", lag=1)
    configure(stage.site.target, stage.site.remote, f"{LIMIT}=20000")
    yield WELL


def a_record_has_no_key_and_the_copy_is_compacted(stage: Stage) -> Iterator[Seen]:
    """The copy was made compacted by hand."""
    configure(stage.site.target, stage.site.remote, "cleanup.policy=compact")
    offer(stage.site, stage.site.topic, [(None, b"x")])
    yield stopped("RecordRefused", "cleanup.policy", lag=1)
    configure(stage.site.target, stage.site.remote, "cleanup.policy=delete")
    yield WELL


def a_timestamp_is_out_of_bounds(stage: Stage) -> Iterator[Seen]:
    """The copy accepts records of the last hour only."""
    configure(stage.site.target, stage.site.remote, "message.timestamp.before.max.ms=3600000")
    offer(stage.site, stage.site.topic, [(b"k", b"old")], timestamp_ms=1_600_000_000_000)
    yield stopped("RecordRefused", "message.timestamp.before.max.ms", lag=1)
    configure(stage.site.target, stage.site.remote, f"message.timestamp.before.max.ms={2**63 - 1}")
    yield WELL


# ---------------------------------------------------------------------- the source changes


def a_topic_is_created_again(stage: Stage) -> Iterator[Seen]:
    """No repair but a verb of a later version: the copy is of another topic."""
    delete_topic(stage.site.source, stage.site.topic)
    stage.site.source.create_topic(stage.site.topic, stage.site.partitions)
    stage.site.produce(4 * stage.site.partitions)
    yield stopped("SourceDataLost", "created again", lag=4)


def a_topic_is_deleted(stage: Stage) -> Iterator[Seen]:
    """Its copy is complete and stays; nothing is left to mirror."""
    other = f"{stage.site.topic}-other"
    stage.site.source.create_topic(other, 1)
    stage.running.wait_for("topic.created")
    delete_topic(stage.site.source, stage.site.topic)
    yield Seen(state="mirroring", event="topic.deleted", fields={"topic": stage.site.topic})


def a_topic_grows(stage: Stage) -> Iterator[Seen]:
    """The copy grows with it."""
    source, topic, more = stage.site.source, stage.site.topic, stage.site.partitions + 1
    source.tool("TopicCommand", "--alter", "--topic", topic, "--partitions", str(more))
    produce(source, topic, 20, partitions=more)
    yield Seen(state="mirroring", partition="mirroring", event="topic.grown")


def records_expire_before_they_are_read(stage: Stage) -> Iterator[Seen]:
    """Retention overtakes a partition that is paused."""
    stage.verb("pause")
    stage.site.produce(40 * stage.site.partitions)
    end = stage.site.view.ends(stage.site.topic, 1)[0]
    delete_records(stage.site.source, stage.site.topic, before=end - 5)
    stage.verb("resume")
    yield stopped("SourceDataLost", "starts at", lag=5)


def a_transaction_of_the_source_is_open(stage: Stage) -> Iterator[Seen]:
    """The run does not ask for the end of the log; `status` does."""
    config = {**stage.site.source.client_config(), "transactional.id": stage.site.topic}
    producer = Producer(config)
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(stage.site.topic, b"first", partition=0)
    producer.flush(10)
    offer(stage.site, stage.site.topic, [(b"k", b"behind it")])
    words = "a transaction is open since offset"
    yield Seen(state="waiting", partition="waiting", words=words, lag=2, of_the_run="mirroring")
    producer.commit_transaction(10)
    yield WELL


# ---------------------------------------------------------------------- the target changes


def another_client_writes_into_our_transactions(stage: Stage) -> Iterator[Seen]:
    """
    Its records stay in the copy: a retry finds them. The topic has to be mirrored again.

    A slow commit makes the task read the copy before it compares where its own records landed.
    """
    long = [b"x" * 1_000] * 5_000  # several batches in one transaction, so others fit between them
    with foreign_writer(stage.site):
        while not stage.running.found("partition.stopped"):
            produce_values(stage.site.source, stage.site.topic, long)
    if not stage.running.found("commit.suspicious"):
        yield stopped("ForeignWriter", "someone else writes this partition")
    stage.verb("retry")
    yield stopped("MarkersLost", "someone else writes there")


def another_client_writes_between_our_transactions(stage: Stage) -> Iterator[Seen]:
    """Nothing is lost or doubled; the event counts its records."""
    produce_values(stage.site.target, stage.site.remote, [b"foreign"])
    offer(stage.site, stage.site.topic, [(b"k", b"next")])
    yield Seen(state="mirroring", partition="mirroring", event="partition.gap")


def a_copy_is_deleted(stage: Stage) -> Iterator[Seen]:
    """It is not created again with holes; a person has to say what should become of it."""
    delete_topic(stage.site.target, stage.site.remote)
    yield Seen(
        state="failed", is_ready=False, event="topic.refused", fields={"topic": stage.site.topic}
    )


def a_transaction_of_another_client_hangs(stage: Stage) -> Iterator[Seen]:
    """A task that acquires the partition cannot tell what is decided."""
    stage.verb("stop")
    config = {
        **stage.site.target.client_config(),
        "transactional.id": stage.site.topic,
        "transaction.timeout.ms": 300_000,
    }
    stranger = Producer(config)
    stranger.init_transactions(30)
    stranger.begin_transaction()
    stranger.produce(stage.site.remote, b"of a stranger", partition=0)
    stranger.flush(30)
    stage.verb("start")
    yield stopped("MarkersLost", "")
    stranger.abort_transaction(30)
    stage.verb("retry")
    yield WELL


def a_position_is_changed_by_hand(stage: Stage) -> Iterator[Seen]:
    """A task that acquires the partition does not believe it."""
    where = f"{stage.site.remote}:0"
    stage.verb("stop")
    stage.site.target.tool(
        "ConsumerGroupCommand", "--group", stage.site.flow.shadow_group, "--topic", where,
        "--reset-offsets", "--to-offset", "3", "--execute",
    )  # fmt: skip
    stage.verb("start")
    yield stopped("PositionLost", "3")


# ---------------------------------------------------------------------- topics that are refused


def refused(topic: str) -> Seen:
    """Return what is seen while one topic is refused and the other one is mirrored."""
    return Seen(
        state="failed",
        partition="mirroring",
        is_ready=False,
        event="topic.refused",
        fields={"topic": topic},
    )


def a_name_is_too_long(stage: Stage) -> Iterator[Seen]:
    """The other topic is mirrored; the refused one is deleted."""
    topic = stage.site.topic + "-" + "x" * (249 - len(stage.site.topic) - 1)
    stage.site.source.create_topic(topic, 1)
    yield refused(topic)
    delete_topic(stage.site.source, topic)
    yield WELL


def a_name_collides_on_the_target(stage: Stage) -> Iterator[Seen]:
    """A topic in the way is deleted; then the copy is created."""
    topic = f"{stage.site.topic}-twin"
    in_the_way = f"{stage.site.flow.source}_{topic}"
    stage.site.target.create_topic(in_the_way, 1)
    stage.site.source.create_topic(topic, 1)
    yield refused(topic)
    delete_topic(stage.site.target, in_the_way)
    yield WELL


# ---------------------------------------------------------------------- operators


def halted(stage: Stage, halt: str, state: str, go: str) -> Iterator[Seen]:
    """Halt the topic as an operator does, produce into it, and let it continue."""
    stage.verb(halt, "--reason", "upgrade of B")
    produce_values(stage.site.source, stage.site.topic, [b"x"] * 5)
    yield Seen(state=state, partition=state, words="upgrade of B", event=f"topics.{state}", lag=5)
    stage.verb(go)
    yield WELL


def an_operator_pauses(stage: Stage) -> Iterator[Seen]:
    """That is what is wanted: nothing is wrong."""
    yield from halted(stage, "pause", "paused", "resume")


def an_operator_stops(stage: Stage) -> Iterator[Seen]:
    """No task holds the partition, and nothing is wrong."""
    yield from halted(stage, "stop", "stopped", "start")


def an_operator_throttles(stage: Stage) -> Iterator[Seen]:
    """It is mirrored, slowly, and its lag says so."""
    stage.verb("throttle", "--records-per-second", "1")
    produce_values(stage.site.source, stage.site.topic, [b"x"] * 500)
    yield Seen(state="mirroring", partition="mirroring", event="topics.throttled", lag=400)
    stage.verb("throttle", "--off")
    stage.site.wait_caught_up()
    yield WELL


def a_second_run_waits(stage: Stage) -> Iterator[Seen]:
    """It is seen as a standby, and the first run as the one that mirrors."""
    with mirror(stage.config) as second:
        second.wait_for("driver.waiting")
        yield WELL
        assert second.stop() == 0, second.errors


# ---------------------------------------------------------------------- processes


def a_task_is_killed(stage: Stage) -> Iterator[Seen]:
    """It is replaced, and everything is well again without a person."""
    os.kill(stage.running.pid(), signal.SIGKILL)
    stage.running.wait_for("task.restarting")
    yield WELL


def a_driver_is_killed(stage: Stage) -> Iterator[Seen]:
    """No place but `status` can say so: the others died with it."""
    stage.running.kill()
    wait_until(
        lambda: _is_not_running(stage),
        within=WITHIN,
        what="`status` says that no run mirrors the flow",
    )
    yield from ()


def _is_not_running(stage: Stage) -> bool:
    return not stage._status(Seen(state="not running", partition="not running"))  # noqa: SLF001


SITUATIONS: Final[Mapping[str, Situation]] = {
    situation.__name__: situation
    for situation in (
        a_record_is_too_large,
        the_limit_is_lowered_under_the_usual_records,
        a_record_has_no_key_and_the_copy_is_compacted,
        a_timestamp_is_out_of_bounds,
        a_topic_is_created_again,
        a_topic_is_deleted,
        a_topic_grows,
        records_expire_before_they_are_read,
        a_transaction_of_the_source_is_open,
        another_client_writes_into_our_transactions,
        another_client_writes_between_our_transactions,
        a_transaction_of_another_client_hangs,
        a_copy_is_deleted,
        a_position_is_changed_by_hand,
        a_name_is_too_long,
        a_name_collides_on_the_target,
        an_operator_pauses,
        an_operator_stops,
        an_operator_throttles,
        a_second_run_waits,
        a_task_is_killed,
        a_driver_is_killed,
    )
}
"""By name."""
