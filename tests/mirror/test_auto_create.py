"""With brokers that create topics on request, no request of the product creates one."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer

from eos_mirror.client import MirrorClient
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.settings import clients
from eos_mirror.settings.clients import claims_producer
from eos_mirror.settings.load import load_settings
from eos_mirror.testing import KafkaCluster, start_clusters, wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.group_sync import SYNCED, commit
from tests.mirror.load import Load
from tests.mirror.surgery import delete_topic
from tests.mirror.toolbox import Mirror, mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

ANSWER_S = 10.0
WITNESS = "witness-"
UNKNOWN = frozenset(
    {
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 (the library's public name)
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
ROUNDS = 12
"""Summaries, one per second: at least two rounds of the lag metrics, which are read every 5 s."""

WATCHED = {
    **SYNCED,
    "metrics_exporters": "prometheus",
    "metrics_listener": "127.0.0.1:0",
    "summary_interval_seconds": 1,
}
COMMANDS = {
    "status": ("status", "{file}"),
    "status of groups": ("status", "{file}", "--groups"),
    "verify": ("verify", "{file}", "{flow}"),
    "translate": ("translate", "{file}", "{flow}", "{topic}", "0", "5"),
    "check": ("run", "{file}", "--check"),
    "adopt": ("adopt", "{file}", "{flow}", "--from", "mode:alo"),
}


@pytest.fixture(scope="module")
def creating(own_brokers: None) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:  # noqa: ARG001
    """A source and a target that create topics; the fixture checks that they do."""
    pair = tuple(
        KafkaCluster(name=name, broker_config={"auto.create.topics.enable": "true"})
        for name in ("creating-source", "creating-target")
    )
    start_clusters(*pair)
    try:
        for cluster in pair:
            topics_of(cluster)
        yield pair[0], pair[1]
    finally:
        for cluster in pair:
            cluster.stop()


@pytest.fixture
def site(tmp_path: Path, creating: tuple[KafkaCluster, KafkaCluster]) -> Site:
    """A flow between clusters that create topics."""
    return make_site(tmp_path, *creating)


def topics_of(cluster: Cluster) -> set[str]:
    """
    Return all topics except witnesses, once every topic that clients asked for is created.

    A broker answers first and creates the topic later. So a client with a producer's default
    settings asks for a witness topic, which is created after the others; without it the test
    would prove nothing.
    """

    def names() -> set[str]:
        return set(cluster.admin().list_topics(timeout=ANSWER_S).topics)

    witness = f"{WITNESS}{uuid.uuid4().hex[:8]}"
    Producer(cluster.client_config()).list_topics(witness, timeout=ANSWER_S)
    wait_until(lambda: witness in names(), within=timedelta(seconds=20), what=witness)
    return {name for name in names() if not name.startswith(WITNESS)}


def other_of(site: Site) -> Site:
    """Create a second topic of the flow, with records."""
    other = Site(**{**vars(site), "topic": f"{site.topic}-other"})
    other.source.create_topic(other.topic, other.partitions)
    other.produce(40)
    return other


def wait_more_summaries(running: Mirror, flow: str) -> None:
    """Wait until all periodic work of the flow was done again."""
    told = len(running.found("flow.summary", flow=flow))
    running.wait_for("flow.summary", count=told + ROUNDS, flow=flow)


def test_a_source_topic_that_was_deleted_stays_deleted(site: Site) -> None:
    """The lag metrics and the sync of a group with offsets on the topic do not create it again."""
    other = other_of(site)
    site.produce(40)
    commit(site.source, f"readers-{site.topic}", {TopicPartition(site.topic, 0): 5})
    config = site.config(
        **WATCHED,
        groups=f"readers-{site.topic}",
        # so rarely that the lag of the deleted topic is read before the deletion is detected
        refresh_topics_interval_seconds=15,
    )
    with mirror(config) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        running.wait_for("checkpoints.emitted", count=2)
        delete_topic(site.source, site.topic)
        wait_more_summaries(running, str(site.flow))
        assert site.topic not in topics_of(site.source)
        running.wait_for("topic.deleted", topic=site.topic)
        wait_more_summaries(running, str(site.flow))

        assert site.topic not in topics_of(site.source)
        other.produce(40, start=40)
        other.view.wait_caught_up(other.topic, other.remote, partitions=other.partitions)
        running.stop()

    assert site.topic not in topics_of(site.source)
    assert site.remote in topics_of(site.target), "the copy is kept"
    assert len(running.found("topic.deleted")) == 1
    assert other.compare().exact


def test_a_copy_that_was_deleted_stays_deleted_through_a_crash(site: Site) -> None:
    """Neither the producer, which has records for it, nor a task's successor creates it."""
    other = other_of(site)
    site.produce(40)
    # topics are not refreshed: whether the driver creates a copy again is for another test
    config = site.config(**WATCHED, refresh_topics_interval_seconds=600, groups="none")
    with mirror(config) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        with Load(site).running() as load:
            load.wait_for(1_000)
            delete_topic(site.target, site.remote)
            load.wait_for(1_000)
            wait_more_summaries(running, str(site.flow))
            assert site.remote not in topics_of(site.target)
            starts = len(running.found("task.started"))
            os.kill(running.pid(), signal.SIGKILL)
            running.wait_for("task.started", count=starts + 1)
            wait_more_summaries(running, str(site.flow))

        assert site.remote not in topics_of(site.target)
        other.produce(40, start=40)
        other.view.wait_caught_up(other.topic, other.remote, partitions=other.partitions)
        running.stop()

    assert site.remote not in topics_of(site.target)
    assert other.compare().exact


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("ran", [True, False], ids=["ran before", "never ran"])
def test_a_command_about_a_topic_that_does_not_exist_creates_nothing(
    site: Site, command: tuple[str, ...], *, ran: bool
) -> None:
    """No command creates the topic or its copy, whether or not the flow ran before."""
    config = site.config(**{**SYNCED, "groups": f"readers-{site.topic}"})
    if ran:
        site.produce(40)
        commit(site.source, f"readers-{site.topic}", {TopicPartition(site.topic, 0): 5})
        with mirror(config, "--once") as running:
            assert running.wait() == 0, running.errors
        delete_topic(site.target, site.remote)
    delete_topic(site.source, site.topic)
    before = topics_of(site.source), topics_of(site.target)

    words = {"file": config, "flow": site.flow, "topic": site.topic}
    done = subprocess.run(
        [sys.executable, "-m", "eos_mirror.cli.main", *(one.format(**words) for one in command)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert "Traceback" not in done.stderr, done.stderr
    assert (topics_of(site.source), topics_of(site.target)) == before, done


@pytest.mark.parametrize("start", ["earliest", "latest", "timestamp:2026-01-01T00:00:00+00:00"])
def test_an_offset_of_a_topic_that_does_not_exist_creates_nothing(site: Site, start: str) -> None:
    """A task's first request, for the start position, fails and creates no topic."""
    (flow,) = load_settings(site.config()).flows
    missing = f"missing-{site.topic}"
    source = ClusterMetadata(
        clients.source_admin(flow), side=Side.SOURCE, patience=timedelta(seconds=2)
    )

    with pytest.raises(Exception, match=missing):
        source.start_offset(TopicPartition(missing, 0), start)

    assert missing not in topics_of(site.source)


def test_an_application_that_asks_for_checkpoints_creates_no_topic(site: Site) -> None:
    """`MirrorClient` creates no topic even if the application's configuration allows it."""
    client = MirrorClient({**site.target.client_config(), "allow.auto.create.topics": "true"})
    before = topics_of(site.target)

    offsets = client.remote_consumer_offsets("readers", "nowhere", timeout=timedelta(seconds=5))

    assert offsets == {}
    assert topics_of(site.target) == before


@pytest.mark.parametrize("role", ["target-producer", "claims-producer"])
def test_a_record_for_a_topic_that_does_not_exist_creates_nothing(site: Site, role: str) -> None:
    """The record fails in the client after the time that is configured for metadata."""
    (flow,) = load_settings(site.config()).flows
    config = dict(
        claims_producer(flow) if role == "claims-producer" else clients.target_producer(flow)
    )
    config.pop("transaction.timeout.ms", None)
    missing = f"missing-{site.topic}"
    errors: list[KafkaError | None] = []
    producer = Producer({**config, "topic.metadata.propagation.max.ms": 1000})

    producer.produce(missing, b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(ANSWER_S)

    assert len(errors) == 1
    assert errors[0] is not None
    assert errors[0].code() in UNKNOWN
    assert missing not in topics_of(site.target)


def test_a_producer_that_knew_a_topic_does_not_create_it_again(site: Site) -> None:
    """A record for a deleted topic is refused by its former leader and creates no topic."""
    (flow,) = load_settings(site.config()).flows
    config = dict(claims_producer(flow))
    topic = f"known-{site.topic}"
    errors: list[KafkaError | None] = []
    site.target.create_topic(topic, 1)
    producer = Producer({**config, "topic.metadata.propagation.max.ms": 1000})
    producer.produce(topic, b"x")
    assert producer.flush(ANSWER_S) == 0
    delete_topic(site.target, topic)

    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(ANSWER_S)

    assert errors
    assert errors[0] is not None, "the record arrived: the topic was created again"
    assert topic not in topics_of(site.target)
