"""Transactions of applications on the source, committed and aborted."""

import uuid

from confluent_kafka import Producer

from tests.mirror.conftest import Site
from tests.mirror.toolbox import MOST_IN_A_BATCH


def transact(site: Site, values: list[bytes], *, commit: bool) -> None:
    """Write these values into partition 0 of the source topic, in one transaction."""
    producer = Producer(
        {
            **site.source.client_config(),
            "transactional.id": uuid.uuid4().hex,
            "batch.num.messages": MOST_IN_A_BATCH,
        }
    )
    producer.init_transactions(10)
    producer.begin_transaction()
    for value in values:
        producer.produce(site.topic, value, partition=0)
    producer.flush(10)
    if commit:
        producer.commit_transaction(10)
    else:
        producer.abort_transaction(10)


def produce_with_gaps(site: Site, rounds: int) -> None:
    """Write committed and aborted transactions, so that upstream offsets have gaps."""
    producer = Producer({**site.source.client_config(), "transactional.id": site.topic})
    producer.init_transactions(30)
    for number in range(rounds):
        producer.begin_transaction()
        for i in range(50):
            producer.produce(site.topic, b"%d-%d" % (number, i), partition=i % site.partitions)
        if number % 3 == 2:
            producer.flush(10)
            producer.abort_transaction(10)
        else:
            producer.commit_transaction(10)
