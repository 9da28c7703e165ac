"""Triggers coordinator lookup, and so creation of internal topics, without waiting for it."""

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from eos_mirror.kafka.authorization import refused_producer
from eos_mirror.kafka.aws_msk_iam import waits_for_a_token
from eos_mirror.kafka.client import new_admin

HELD_S = 60.0


def find_coordinator(config: Mapping[str, Any], group: str) -> None:
    """
    Look up the coordinator of a group without waiting for the answer.

    A new cluster creates `__consumer_offsets` meanwhile, which takes as long as half a start. This
    only reads; an error is left for the next request to report.

    Args:
        config: Client settings for connection and security.
    """
    if not waits_for_a_token(config):
        with suppress(KafkaException):  # the configuration is wrong
            _ask(new_admin(config), group)


def _ask(admin: AdminClient, group: str) -> None:
    # longest timeout: a coordinator found after it frees the request twice (groups.py)
    answer = admin.describe_consumer_groups([group], request_timeout=3600.0)
    threading.Thread(target=_hold, args=(admin, answer), daemon=True).start()


def find_transaction_coordinator(producer_config: Mapping[str, Any], transactional_id: str) -> None:
    """
    Do the same for `__transaction_state`. This only reads: the target refuses the request.

    Args:
        producer_config: Configuration of a transactional producer, without the id.
    """
    if waits_for_a_token(producer_config):
        return
    try:
        producer = refused_producer(producer_config, transactional_id)
    except KafkaException:
        return  # the configuration is wrong
    with suppress(KafkaException):  # there is no answer yet
        producer.init_transactions(0.0)
    threading.Thread(target=_hold, args=(producer,), daemon=True).start()


def _hold(*_clients: object) -> None:
    """
    Keep a client during the start: dropping it ends its request.

    Its log is not read, and its destructor may wait here. Later it would only repeat logins.
    """
    time.sleep(HELD_S)
