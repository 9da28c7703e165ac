"""
Networks that part, repeat or hang: rows G1, G2, G7 and G8 of the failure matrix.

A late duplicate of a commit under load, without a crash, is in test_target_faults.py.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from eos_mirror.kafka.lane import shadow_group_metadata
from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.entry import environ_for
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.faults import Action, Api, Fault
from eos_mirror.testing.proxy import fault_proxies
from tests.mirror.configurations import detour
from tests.mirror.conftest import Site, make_site
from tests.mirror.crashes import assert_copied, drain, hold_a_writer, undecided
from tests.mirror.load import Load
from tests.mirror.raw import write_marker
from tests.mirror.rights import deny, guarded_cluster, login_at_target
from tests.mirror.toolbox import Mirror, mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

MEMBERSHIP = (Api.JOIN_GROUP, Api.SYNC_GROUP, Api.HEARTBEAT, Api.OFFSET_COMMIT)


@pytest.fixture(scope="module")
def proxied(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """One broker that is also reached through a proxy."""
    with KafkaCluster(name="proxied", proxied=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def guarded(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A target with users and access control."""
    with guarded_cluster() as cluster:
        yield cluster


def pass_time(seconds: float) -> None:
    """Wait for as long as the fault under test lasts."""
    threading.Event().wait(seconds)


# ---------------------------------------------------------------------- G1, G2: cut off


def test_g1_a_task_cut_off_from_its_group_cannot_commit_for_the_new_owner(
    tmp_path: Path, proxied: KafkaCluster, guarded: KafkaCluster
) -> None:
    """
    Only its coordinator is cut off: the task still reads, but the target refuses its writes.

    The new owner is a task of another run; neither run may see the other one.
    """
    site = make_site(tmp_path, proxied, guarded)
    group = (ResourceType.GROUP, site.flow.drivers_group, ResourcePatternType.LITERAL)
    deny(guarded, group, AclOperation.READ)
    config = login_at_target(site)
    with fault_proxies(proxied.proxy_ports) as proxies, mirror(detour(config, proxied)) as cut_off:
        with Load(site).running() as load:
            cut_off.wait_for("ready")
            load.wait_for(5_000)
            faults = [Fault(api, Action.HOLD_REQUEST, times=None) for api in MEMBERSHIP]
            for fault in faults:
                proxies[1].inject(fault)
            # one hit is enough: a request that is held blocks all requests after it
            wait_until(
                lambda: any(fault.hits for fault in faults),
                within=timedelta(seconds=30),
                what="a request of the group to be held",
            )
            with mirror(config) as owner:
                owner.wait_for("ready")
                cut_off.wait_for("task.restarting")
                load.wait_for(5_000)
                assert owner.stop() == 0, owner.errors
            for fault in faults:
                fault.release()
            load.wait_for(5_000)
        drain(site, cut_off)
        assert cut_off.stop() == 0, cut_off.errors
    assert_copied(site, load.count)
    assert owner.found("incarnation.fenced"), "nothing was fenced: the test proves nothing"


def test_g2_a_task_cut_off_from_the_target_commits_nothing_when_it_is_back(
    tmp_path: Path, source_cluster: Cluster, proxied: KafkaCluster
) -> None:
    """
    Requests that waited in its buffers are refused.

    The task is cut off in an open transaction. Another task fences it and mirrors in the meantime.
    """
    site = make_site(tmp_path, source_cluster, proxied)
    config, held = site.config(), environ_for(pause_at="flushed:4")
    with (
        fault_proxies(proxied.proxy_ports) as proxies,
        mirror(detour(config, proxied), env=held) as cut_off,
    ):
        with Load(site).running() as load:
            task = hold_a_writer(cut_off)
            assert undecided(site), "no transaction is open: the test proves nothing"
            proxies[1].part()
            os.kill(task, signal.SIGCONT)
            with mirror(config) as other:
                other.wait_for("ready")
                load.wait_for(5_000)
                assert other.stop() == 0, other.errors
            proxies[1].heal()
            cut_off.wait_for("task.restarting")
            load.wait_for(5_000)
        drain(site, cut_off)
        assert cut_off.stop() == 0, cut_off.errors
    assert_copied(site, load.count)


# ---------------------------------------------------------------------- G7: late duplicates

STRUCK = 4
"""Which commit is sent twice; the first one commits the start positions. Its transaction and the
next one mirror the same partition: each has 1,000 of its 5,000 records."""

NO_GUARD = """
from eos_mirror.kafka import transactional_producer as producer
from eos_mirror.replication import positions

positions.split_partitions = lambda *_: {}
honest = producer.KafkaProducer.commit

def commit(self, offsets, *, within):
    honest(self, offsets, within=within)
    return producer.Committed()

producer.KafkaProducer.commit = commit
"""
"""
Python runs this before a program. Every commit seems quick and undisturbed, and the last records
of a partition are not checked; that check would stop the partition before records are doubled.
"""


REPEATS: Final = {"data_path": "client"}
"""Only librdkafka sends a request again without saying so."""


def without_guard(folder: Path) -> dict[str, str]:
    """Return the environment of a mirror that never suspects a commit."""
    (folder / "sitecustomize.py").write_text(NO_GUARD)
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


def repeat_a_commit_late(site: Site, proxied: KafkaCluster, **env: str) -> Mirror:
    """Deliver the first copy of a repeated commit inside the next transaction, then crash."""
    site.produce(20_000)
    config = detour(site.config(transaction_boundary_records=1_000, **REPEATS), proxied)
    pause = environ_for(pause_at=f"flushed:{STRUCK}")
    with fault_proxies(proxied.proxy_ports) as proxies, mirror(config, env=pause | env) as running:
        stolen = Fault(Api.END_TXN, Action.STEAL_REQUEST, skip=STRUCK - 1)
        proxies[1].inject(stolen)
        stolen.wait_hit()
        task = hold_a_writer(running)
        deliver(stolen, proxies[1].seen(Api.END_TXN))
        os.kill(task, signal.SIGKILL)
        drain(site, running)
        assert running.stop() == 0, running.errors
    return running


def repeat_offsets_late(site: Site, proxied: KafkaCluster, **env: str) -> Mirror:
    """Deliver the first copy of repeated shadow offsets after the next ones, then crash."""
    site.produce(20_000)
    config = detour(site.config(transaction_boundary_records=1_000, **REPEATS), proxied)
    pause = environ_for(pause_at=f"committed:{STRUCK + 1}")
    with fault_proxies(proxied.proxy_ports) as proxies, mirror(config, env=pause | env) as running:
        stolen = Fault(Api.TXN_OFFSET_COMMIT, Action.STEAL_REQUEST, skip=STRUCK - 1)
        held = Fault(Api.END_TXN, Action.HOLD_REQUEST, skip=STRUCK)
        proxies[1].inject(stolen)
        proxies[1].inject(held)
        held.wait_hit()
        deliver(stolen, proxies[1].seen(Api.TXN_OFFSET_COMMIT))
        held.release()
        os.kill(hold_a_writer(running), signal.SIGKILL)
        drain(site, running)
        assert running.stop() == 0, running.errors
    return running


def deliver(stolen: Fault, seen: int) -> None:
    """Let the stolen request reach the broker, after the client has sent it again."""
    assert seen > STRUCK, "it was not sent twice: the test proves nothing"
    stolen.release()
    pass_time(1.0)  # the answer reaches no client, so there is no condition to wait for


LATE_DUPLICATES = pytest.mark.parametrize("repeat", [repeat_a_commit_late, repeat_offsets_late])


@LATE_DUPLICATES
def test_g7_a_late_duplicate_strikes_no_later_transaction(
    tmp_path: Path,
    source_cluster: Cluster,
    proxied: KafkaCluster,
    repeat: Callable[[Site, KafkaCluster], Mirror],
) -> None:
    """KAFKA-17754: the transaction after a suspicious commit belongs to a new incarnation."""
    site = make_site(tmp_path, source_cluster, proxied)

    running = repeat(site, proxied)

    assert running.found("commit.suspicious"), "the broken connection was not detected"
    assert_copied(site, 20_000)


@LATE_DUPLICATES
def test_g7_without_the_guard_a_late_duplicate_doubles_a_transaction(
    tmp_path: Path,
    source_cluster: Cluster,
    proxied: KafkaCluster,
    repeat: Callable[..., Mirror],
) -> None:
    """The fault is real: the same task without the guard writes records twice."""
    site = make_site(tmp_path, source_cluster, proxied)

    repeat(site, proxied, **without_guard(tmp_path))

    assert site.compare().duplicates > 0


# ---------------------------------------------------------------------- G8: hanging


def test_g8_a_partition_with_a_hanging_transaction_is_reported_and_not_skipped(
    site: Site,
) -> None:
    """With open data or offsets, a partition stops after half a minute; the others continue."""
    site.produce(400)
    with mirror(site.config(), "--once") as first:
        assert first.wait() == 0, first.errors
    site.produce(400, start=400)
    hanging = Producer(
        {
            **site.target.client_config(),
            "transactional.id": f"{site.flow.name}.stranger",
            "transaction.timeout.ms": 300_000,
        }
    )
    hanging.init_transactions(30)
    hanging.begin_transaction()
    hanging.produce(site.remote, b"of a stranger", partition=0)
    hanging.flush(30)
    shadow = shadow_group_metadata(site.flow, site.target.client_config())
    hanging.send_offsets_to_transaction([ClientPartition(site.remote, 1, 0)], shadow, 30)

    with mirror(site.config(), "--once") as second:
        assert second.wait(within_s=90) == 1, second.errors
    stopped = second.found("partition.stopped", cause="MarkersLost")
    assert {event["partition"] for event in stopped} == {f"{site.topic}-0", f"{site.topic}-1"}

    hanging.abort_transaction(30)
    with mirror(site.config(), "--once") as third:
        assert third.wait() == 0, third.errors
    assert_copied(site, 800)


def producer_of(running: Mirror, site: Site) -> tuple[int, int]:
    """Return producer id and epoch of the task's transactional id."""
    incarnation = running.found("incarnation.started")[-1]["transactional_id"]
    told = site.target.tool("TransactionsCommand", "describe", "--transactional-id", incarnation)
    titles, values = (line.split("\t") for line in told.stdout.splitlines()[:2])
    row = {t.strip(): v.strip() for t, v in zip(titles, values, strict=True)}
    return int(row["ProducerId"]), int(row["ProducerEpoch"])


@pytest.mark.parametrize("commit", [True, False])
def test_g8_half_a_commit_is_not_built_upon(
    tmp_path: Path, source_cluster: Cluster, target_cluster: Cluster, *, commit: bool
) -> None:
    """
    Records without their offset would be doubled; an offset without its records is a loss.

    A single-node target that is killed can leave either (KAFKA-20734); here a forged marker does.
    """
    site = make_site(tmp_path, source_cluster, target_cluster, partitions=1)
    flag = tmp_path / "pause"
    site.produce(100)
    with mirror(site.config(), env=environ_for(pause_at=f"flushed@{flag}")) as running:
        site.view.wait_caught_up(site.topic, site.remote, partitions=1)
        flag.touch()
        site.produce(1, start=100)
        task = hold_a_writer(running)
        producer = producer_of(running, site)
        write_marker(site.target.admin(), site.remote, 0, producer=producer, commit=commit)
        if not commit:
            os.kill(task, signal.SIGCONT)
            site.view.wait_caught_up(site.topic, site.remote, partitions=1)
        os.kill(task, signal.SIGKILL)
        running.wait_for("partition.stopped", cause="MarkersLost")
        assert running.stop() == 1, running.errors

    with mirror(site.config(), "--once") as second:
        assert second.wait() == 1, second.errors
    (stopped,) = second.found("partition.stopped", cause="MarkersLost")
    assert ("would be doubled" if commit else "was aborted") in stopped["reason"]
    compared = site.compare()
    assert (compared.duplicates, compared.missing) == (0, 0 if commit else 1)
