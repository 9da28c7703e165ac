"""Uses a broker once as tests do, so that the archive has the classes that it loads then."""

import contextlib
import re
from datetime import timedelta
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from eos_mirror.testing.waiting import wait_until

TOPIC = GROUP = "training"
STEP_S = 20.0
LISTENING = re.compile(rb"Awaiting socket connections on (127\.0\.0\.1:\d+)")


def train(log_file: Path) -> None:
    """
    Use a broker. If it does not answer, the archive is only smaller.

    Args:
        log_file: Log of the broker. It contains the addresses where the broker listens: first for
            other controllers, then for clients.
    """
    *_, address = LISTENING.findall(log_file.read_bytes())
    with contextlib.suppress(KafkaException, TimeoutError):
        _use({"bootstrap.servers": address.decode(), "log_level": 0})


def _use(client: dict[str, str | int]) -> None:
    admin = AdminClient(dict(client))
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(STEP_S)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC)
    admin.describe_configs([resource])[resource].result(STEP_S)
    consumer = Consumer(
        {**client, "group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    producer = Producer({**client, "transactional.id": TOPIC})
    producer.init_transactions(STEP_S)
    for _ in range(2):
        producer.begin_transaction()
        producer.produce(TOPIC, b"value", b"key", partition=0)
        producer.flush(STEP_S)
        producer.send_offsets_to_transaction(
            [TopicPartition(TOPIC, 0, 1)], consumer.consumer_group_metadata(), STEP_S
        )
        producer.commit_transaction(STEP_S)
    consumer.subscribe([TOPIC])
    wait_until(
        lambda: consumer.poll(0.2) is not None, within=timedelta(seconds=STEP_S), what="a record"
    )
    consumer.commit(asynchronous=False)
    consumer.close()
    admin.describe_consumer_groups([GROUP])[GROUP].result(STEP_S)
    admin.delete_topics([TOPIC])[TOPIC].result(STEP_S)
