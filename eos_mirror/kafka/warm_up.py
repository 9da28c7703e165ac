"""Having a cluster get ready for what it will be asked, without waiting for it."""

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from eos_mirror.kafka.authorization import refused_producer

HELD_S = 60.0

_kept: list[object] = []
"""Clients and answers that nobody waits for: a client that is dropped ends with its request."""


def find_coordinator(config: Mapping[str, Any], group: str) -> None:
    """
    Ask for a group, and do not wait: a new cluster makes `__consumer_offsets` meanwhile, which
    takes as long as half a start. Reads only; what is wrong is said to who asks next.

    Args:
        config: Connection and security.
    """
    admin = AdminClient(dict(config))
    # the longest time: a coordinator that is found later frees the request twice (groups.py)
    _kept.append((admin, admin.describe_consumer_groups([group], request_timeout=3600.0)))


def find_transaction_coordinator(producer_config: Mapping[str, Any], transactional_id: str) -> None:
    """
    The same for `__transaction_state`. Reads only: what it asks for is refused.

    Args:
        producer_config: Of a transactional producer, without the id.
    """
    producer = refused_producer(producer_config, transactional_id)
    with suppress(KafkaException):  # there is no answer yet
        producer.init_transactions(0.0)
    threading.Thread(target=_hold, args=(producer,), daemon=True).start()


def _hold(_producer: Producer) -> None:
    """For the start only: nobody reads its log. The destructor may wait, and does so here."""
    time.sleep(HELD_S)
