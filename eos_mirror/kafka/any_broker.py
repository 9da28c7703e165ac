"""
A question that every broker answers, whatever the principal may do. It creates no topic.

librdkafka has a request for this, DescribeCluster, and aborts the process if the answer names no
broker (2.16: `rd_kafka_DescribeClusterResponse_parse` reports neither a result nor an error). Such
an answer comes while all brokers are fenced: the cluster is starting, or its brokers were frozen.
"""

from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

ASKED_FOR: Final = "__consumer_offsets"
"""Need not exist: that is an answer, too."""


def ask_any_broker(admin: AdminClient, *, within_s: float) -> "Future[Any]":
    """Send the question; see `is_answered`."""
    wanted = TopicCollection([ASKED_FOR])
    answer: Future[Any] = admin.describe_topics(wanted, request_timeout=within_s)[ASKED_FOR]
    return answer


def is_answered(answer: "Future[Any]", *, within_s: float) -> bool:
    """
    Return True if a broker answered, whatever it said. Waits for an answer that is due.

    Raises:
        TimeoutError: None is there in time.
    """
    error = answer.exception(within_s)
    return error is None or (isinstance(error, KafkaException) and error.args[0].code() >= 0)
