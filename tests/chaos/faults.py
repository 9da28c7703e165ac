"""
The faults of the nemesis, one function per kind.

Each function causes the fault, holds it, undoes it, and returns whether it hit anything.
`ChaosTargets.hold` returns early when everything is being healed, so no fault outlives the run.
"""

import os
import random
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta

from confluent_kafka import KafkaException

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import Action, Api, Fault, wait_until
from tests.chaos.chaos_targets import (
    ChaosTargets,
    Kind,
    any_broker,
    any_task,
    configured_copy,
    freeze,
    kill_below_driver,
    pause_broker,
    pause_s,
    settle,
    stopped_by_themselves,
    strike,
    wait_for,
)
from tests.chaos.site import DOOMED, LONELY_NODE, PARTITIONS, PICKY, POINTS, remote

DOWN_S = 2.0
MAX_BYTES = "max.message.bytes"
POINT_WITHIN = timedelta(seconds=10)
RESUMED_WITHIN = timedelta(seconds=180)

# ---------------------------------------------------------------------- tasks and drivers


def kill_task(targets: ChaosTargets, dice: random.Random) -> bool:
    """Send SIGKILL to the process of a task."""
    pid = any_task(targets, dice)
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pid is not None


def pause_task(targets: ChaosTargets, dice: random.Random) -> bool:
    """Stop a task for a moment, for less than the session timeout, or for up to three of them."""
    length_s = pause_s(dice)
    pid = any_task(targets, dice)
    if pid is None:
        return False
    freeze(targets, pid, length_s)
    return True


def pause_at_point(targets: ChaosTargets, dice: random.Random) -> bool:
    """Pause the first task that reaches a named point of its transaction: it stops itself there."""
    point, length_s = dice.choice(POINTS), pause_s(dice)
    flag = targets.site.flag(point)
    flag.touch()
    with suppress(TimeoutError):
        wait_for(targets, lambda: not flag.exists(), POINT_WITHIN, point)
    if flag.exists():
        flag.unlink(missing_ok=True)
        return False
    with suppress(TimeoutError):
        wait_for(
            targets, lambda: bool(stopped_by_themselves(targets)), POINT_WITHIN, "a stopped task"
        )
    stopped = stopped_by_themselves(targets)
    for pid in stopped:
        freeze(targets, pid, length_s)
    return bool(stopped)


def kill_driver(targets: ChaosTargets, _: random.Random) -> bool:
    """Send SIGKILL to the driver, and start it again immediately."""
    return targets.restarting.replace(signal.SIGKILL)


def stop_driver(targets: ChaosTargets, _: random.Random) -> bool:
    """Stop the driver gracefully, and start it again immediately."""
    return targets.restarting.replace(signal.SIGTERM)


def kill_python_daemon(targets: ChaosTargets, _: random.Random) -> bool:
    """Send SIGKILL to pyspark.daemon: every task dies with it."""
    return kill_below_driver(targets, b"pyspark.daemon")


def kill_jvm(targets: ChaosTargets, _: random.Random) -> bool:
    """Send SIGKILL to the JVM of the driver."""
    return kill_below_driver(targets, b"java")


# ---------------------------------------------------------------------- brokers


def kill_target(targets: ChaosTargets, dice: random.Random) -> bool:
    """Send SIGKILL to a broker of the target, and start it again after two seconds."""
    target = targets.site.target
    node = any_broker(targets, dice)
    target.kill(node)
    targets.hold(DOWN_S)
    target.start_node(node)
    settle(targets)
    return True


def pause_target(targets: ChaosTargets, dice: random.Random) -> bool:
    """Stop a broker of the target with SIGSTOP for a while."""
    return pause_broker(targets, targets.site.target, any_broker(targets, dice), dice)


def roll_target(targets: ChaosTargets, _: random.Random) -> bool:
    """Restart the brokers one after another, each when the others are in sync."""
    target = targets.site.target
    for node in target.spec.broker_ids:
        target.terminate(node)
        target.start_node(node)
        settle(targets)
        if targets.healing.is_set():
            break
    return True


def restart_source(targets: ChaosTargets, _: random.Random) -> bool:
    """
    Restart the only broker of the source, between two of its transactions.

    A broker without replicas can forget to write markers when it is restarted (KAFKA-20734): the
    source would lose what it has acknowledged, and the run would prove nothing.
    """
    with targets.ledger:
        targets.site.source.terminate(1)
        targets.site.source.start_node(1)
    return True


def pause_source(targets: ChaosTargets, dice: random.Random) -> bool:
    """Stop the broker of the source with SIGSTOP for a while."""
    return pause_broker(targets, targets.site.source, 1, dice)


def lonely_broker_away(targets: ChaosTargets, dice: random.Random) -> bool:
    """Take the only replica of a copy away, for a time shorter or longer than a flush may last."""
    target = targets.site.target
    if LONELY_NODE not in target.spec.broker_ids:
        return False
    target.terminate(LONELY_NODE)
    targets.hold(dice.uniform(5, 30))
    target.start_node(LONELY_NODE)
    settle(targets)
    return True


# ---------------------------------------------------------------------- the copies


def compact_copy(targets: ChaosTargets, dice: random.Random) -> bool:
    """Make a copy refuse records without a key for a while, too short for a compaction."""
    with configured_copy(
        targets, PICKY, {"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}
    ):
        targets.hold(dice.uniform(2, 20))
    return True


def limit_copy(targets: ChaosTargets, dice: random.Random) -> bool:
    """Make a copy accept only small batches for a while, or not even every single record."""
    limit, usual = str(dice.choice((120, 180, 400, 2_000))), str(1_048_588)
    with configured_copy(targets, PICKY, {MAX_BYTES: limit}, {MAX_BYTES: usual}):
        targets.hold(dice.uniform(2, 20))
    return True


def delete_copy(targets: ChaosTargets, _: random.Random) -> bool:
    """Delete the copy of a topic that is not compared; it must not come back with holes."""
    target = targets.site.target.admin()
    copy = remote(TopicPartition(DOOMED, 0)).topic
    try:
        target.delete_topics([copy])[copy].result(10)
    except KafkaException:
        return False  # it is gone already
    return True


# ---------------------------------------------------------------------- operators


def pause_topic(targets: ChaosTargets, dice: random.Random) -> bool:
    """Pause a topic as an operator does, and resume it. The order may outlive the driver."""
    topic = ("--topics", dice.choice(sorted(PARTITIONS)))
    return _for_a_while(targets, dice, ("pause", *topic), ("resume", *topic))


def stop_topic(targets: ChaosTargets, dice: random.Random) -> bool:
    """Stop a topic as an operator does, and start it: its tasks release and claim it again."""
    topic = ("--topics", dice.choice(sorted(PARTITIONS)))
    return _for_a_while(targets, dice, ("stop", *topic), ("start", *topic))


def throttle_flow(targets: ChaosTargets, dice: random.Random) -> bool:
    """Limit the flow, or each topic, to less than its load."""
    topics = dice.choice(((), ("--topics", ".*s.*")))
    limit = ("--records-per-second", str(dice.choice((100, 400, 1_000))))
    return _for_a_while(targets, dice, ("throttle", *topics, *limit), ("throttle", "--off"))


def _for_a_while(
    targets: ChaosTargets, dice: random.Random, order: Sequence[str], undo: Sequence[str]
) -> bool:
    """Give an order, and undo it; also if nothing reported it: the order may have arrived."""
    targets.order(*order, "--reason", "chaos")
    targets.hold(dice.uniform(1, 10))
    wait_until(lambda: targets.order(*undo), within=RESUMED_WITHIN, what=" ".join(undo))
    return True


def reload_file(targets: ChaosTargets, _: random.Random) -> bool:
    """Have the run read its file again; nothing in it has changed."""
    return targets.order("reload")


def retry_partitions(targets: ChaosTargets, _: random.Random) -> bool:
    """Have stopped partitions tried again, as an operator does."""
    return targets.order("retry")


# ---------------------------------------------------------------------- the network


def cut_connections(targets: ChaosTargets, dice: random.Random) -> bool:
    """Reset every connection to a broker of the target."""
    targets.site.proxies[any_broker(targets, dice)].cut_all()
    return True


def part_broker(targets: ChaosTargets, dice: random.Random) -> bool:
    """Cut the whole mirror off from a broker of the target for seconds."""
    proxy = targets.site.proxies[any_broker(targets, dice)]
    length_s = dice.uniform(1, 5)
    proxy.part()
    targets.hold(length_s)
    proxy.heal()
    return True


ANSWERS = (Api.END_TXN, Api.TXN_OFFSET_COMMIT, Api.PRODUCE)
LOSSES = (
    Action.DELAY_REQUEST,
    Action.DELAY_RESPONSE,
    Action.DROP_RESPONSE,
    Action.CUT_AFTER_REQUEST,
    Action.CUT_BEFORE_RESPONSE,
)


def lose_answer(targets: ChaosTargets, dice: random.Random) -> bool:
    """Delay or lose the response to one request."""
    delay = timedelta(seconds=dice.choice([dice.uniform(0.05, 1), dice.uniform(1, 8)]))
    api = dice.choice(ANSWERS) if targets.site.exactly_once else Api.PRODUCE
    fault = Fault(api, dice.choice(LOSSES), delay=delay)
    return strike(targets, fault, hold_s=delay.total_seconds())


def duplicate_commit(targets: ChaosTargets, dice: random.Random) -> bool:
    """Deliver an EndTxn after the client has sent it again (KAFKA-17754)."""
    return strike(targets, Fault(Api.END_TXN, Action.STEAL_REQUEST), hold_s=dice.uniform(0.05, 3))


def hold_commit(targets: ChaosTargets, dice: random.Random) -> bool:
    """Deliver an EndTxn after its sender has given up."""
    return strike(targets, Fault(Api.END_TXN, Action.HOLD_REQUEST), hold_s=dice.uniform(7, 10))


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(name="task.kill", place="kill", act=kill_task, weight=2),
        Kind(name="task.pause", place="task", act=pause_task),
        Kind(name="task.point", place="point", act=pause_at_point, weight=2),
        Kind(name="driver.kill", place="driver", act=kill_driver, weight=0.7),
        Kind(name="driver.stop", place="driver", act=stop_driver, weight=0.5),
        Kind(name="daemon.kill", place="driver", act=kill_python_daemon, runtimes=("spark",)),
        Kind(name="jvm.kill", place="driver", act=kill_jvm, weight=0.5, runtimes=("spark",)),
        Kind(name="target.kill", place="target", act=kill_target),
        Kind(name="target.pause", place="target", act=pause_target),
        Kind(name="target.roll", place="target", act=roll_target, weight=0.3),
        Kind(name="target.away", place="target", act=lonely_broker_away, weight=0.5),
        Kind(name="copy.compact", place="copy", act=compact_copy),
        Kind(name="copy.limit", place="copy", act=limit_copy),
        Kind(name="copy.delete", place="copy", act=delete_copy, weight=0.3),
        Kind(name="topic.pause", place="orders", act=pause_topic),
        Kind(name="topic.stop", place="orders", act=stop_topic),
        Kind(name="flow.throttle", place="orders", act=throttle_flow),
        Kind(name="file.reload", place="orders", act=reload_file, weight=0.3),
        Kind(name="partition.retry", place="orders", act=retry_partitions, weight=0.5),
        Kind(name="source.restart", place="source", act=restart_source, weight=0.5),
        Kind(name="source.pause", place="source", act=pause_source, weight=0.5),
        Kind(name="net.cut", place="network", act=cut_connections),
        Kind(name="net.part", place="network", act=part_broker),
        Kind(name="answer.lost", place="request", act=lose_answer, weight=2),
        Kind(name="commit.twice", place="request", act=duplicate_commit),
        Kind(name="commit.held", place="request", act=hold_commit, weight=0.5),
    )
}
"""Every kind of fault by its name."""


def applicable(*, exactly_once: bool) -> list[str]:
    """Return the kinds of faults that can hit something in a mode."""
    return [name for name in KINDS if exactly_once or not name.startswith("commit.")]
