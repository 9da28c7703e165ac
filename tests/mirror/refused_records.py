"""Topics whose copies refuse some records: configured, written, and read back."""

from collections.abc import Sequence
from datetime import timedelta

from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from eos_mirror.core.quarantine import QuarantinedRecord, decode_quarantined, decode_replayed
from eos_mirror.core.records import TopicRecord
from eos_mirror.testing import wait_until
from eos_mirror.testing.checker import read_topic
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site
from tests.mirror.toolbox import Mirror

AT_LEAST_ONCE = {"transaction_producer": "false"}
DROPPING = {**AT_LEAST_ONCE, "abort_on_send_failure": "false"}
"""At-least-once mode, in which a refused record is dropped."""

TOLERANT = {
    "errors_tolerance": "all",
    "errors_deadletterqueue_topic_replication_factor": "1",
}
"""A refused record moves to the quarantine."""

WITHIN = timedelta(seconds=40)
"""For a copy to have its records."""

Record = tuple[bytes | None, bytes]
"""Key and value."""


def configure(cluster: Cluster, topic: str, config: str) -> None:
    """Set entries of a topic's configuration, such as `a=1,b=2`; return when brokers have them."""
    wanted = dict(one.split("=", 1) for one in config.split(","))
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in wanted.items()
    ]
    admin = cluster.admin()
    asked = ConfigResource(ResourceType.TOPIC, topic)
    changed = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([changed])[changed].result(30)

    def have_them() -> bool:
        found = admin.describe_configs([asked])[asked].result(30)
        return all(found[name].value == value for name, value in wanted.items())

    wait_until(have_them, within=WITHIN, what=f"{config} of {topic}")


def offer(site: Site, topic: str, records: Sequence[Record], *, timestamp_ms: int = 0) -> None:
    """Produce into partition 0 of a source topic, in one batch where the client can."""
    producer = Producer({**site.source.client_config(), "linger.ms": 200})
    for key, value in records:
        producer.produce(topic, value, key, 0, timestamp=timestamp_ms)
    assert producer.flush(10) == 0


def values(site: Site, topic: str) -> list[bytes | None]:
    """Return the values in partition 0 of a topic's copy."""
    remote = f"{site.flow.source}.{topic}"
    found = read_topic(site.target.client_config(), remote, partitions=1)
    return [record.value for record in found[0]]


def assert_no_process_ended(running: Mirror) -> None:
    """Assert that refusals caused a new incarnation at most, and no restart of a task."""
    assert not running.found("task.restarting"), running.found("task.restarting")


def quarantined(
    site: Site, queue: str | None = None, *, partitions: int = 1
) -> list[QuarantinedRecord]:
    """Return the records in the quarantine, in order."""
    topic = queue or site.flow.quarantine_topic
    found = read_topic(site.target.client_config(), topic, partitions=partitions)
    records = (TopicRecord(one.key, one.value, list(one.headers)) for some in found for one in some)
    return [decode_quarantined(one) for one in records if decode_replayed(one) is None]


def mixed(count: int) -> list[Record]:
    """Return records, every third of which has no key."""
    return [(None if n % 3 == 1 else b"k", b"%d" % n) for n in range(count)]
