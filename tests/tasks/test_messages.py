"""Messages between the driver and its tasks: they arrive unchanged, or are an error."""

import json
from datetime import timedelta
from typing import Any

import pytest

from eos_mirror.core.boundary import Boundary
from eos_mirror.core.flow import Flow
from eos_mirror.core.messages import (
    CheckpointClients,
    CheckpointConfig,
    CheckpointOrders,
    CheckpointReport,
    GroupSelection,
    MirrorClients,
    MirrorConfig,
    Orders,
    PartitionMetrics,
    SyncsTopic,
    TaskConfig,
    TaskReport,
)
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.spread import Spread
from eos_mirror.core.suspects import Suspect
from eos_mirror.errors import FatalError
from eos_mirror.tasks.messages import decode, encode

ORDERS = TopicPartition("orders-eu", 3)
SUSPECT = Suspect(first=0, end=9, max_records=4, refused=(3, 5), code="X", reason="y")
CLIENT = {"bootstrap.servers": "b:9092", "sasl.password": "hunter2"}
MIRROR = MirrorConfig(
    flow=Flow("A", "B"),
    boundary=Boundary(
        interval_s=0.1, timeout_s=60.0, max_bytes=10, max_records=8, every_poll=False
    ),
    start_position="earliest",
    claims_topic_id="x" * 22,
    keepalive=timedelta(milliseconds=1_500),
)
MESSAGES = [
    TaskConfig(
        mirror=MIRROR,
        clients=MirrorClients(
            source_consumer=CLIENT,
            source_admin=CLIENT,
            target_producer=CLIENT,
            plain_producer=CLIENT,
            target_admin=CLIENT,
            claims_producer=CLIENT,
            claims_consumer=CLIENT,
        ),
        syncs=SyncsTopic(topic="mm2-offset-syncs.A.internal", replication_factor=3),
    ),
    Orders(topics={"a": "A.a"}, stopped={ORDERS: "why"}, suspects={ORDERS: SUSPECT}, rejoin=2),
    TaskReport(
        records=1,
        commit_ms=0.5,
        stopped={ORDERS: "why"},
        resumed=(ORDERS,),
        suspects={ORDERS: SUSPECT},
        measured=(
            PartitionMetrics(
                partition=ORDERS, records=1, bytes=2, age=Spread.of([3, 4]), latency=None
            ),
        ),
    ),
    CheckpointConfig(
        flow=Flow("A", "B"),
        topic="A.checkpoints.internal",
        syncs_topic=None,
        replication_factor=3,
        refresh_s=None,
        emit_s=5.0,
        sync_s=60,
        on_commit=True,
        clients=CheckpointClients(source_admin=CLIENT, target_admin=CLIENT, claims_producer=CLIENT),
    ),
    CheckpointOrders(
        topics={"a": "A.a"},
        groups=GroupSelection(include=(".*",), filter_class="x.Y", filter_config={"a": [1]}),
    ),
    CheckpointReport(groups=3, checkpoints=2, moved=1, latency=Spread.of([7])),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_arrives_as_it_was_sent(message: object) -> None:
    """A message is unchanged after JSON, with every class that a field may have."""
    line = json.dumps(encode(message))

    assert decode(type(message), json.loads(line)) == message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "message version 2, this process speaks 1"),
        ({"version": None}, "message version None"),
        ({"colour": "red"}, "unknown field colour"),
        ({"rejoin": "often"}, "'often' is no int"),
        ({"stopped": {"no partition": "why"}}, "not such a message"),
        ({"suspects": {"orders-3": {"first": 0}}}, "not such a message"),
    ],
)
def test_a_message_of_another_release_is_refused(change: dict[str, Any], said: str) -> None:
    """A message of another release is an error that names the message and the reason."""
    with pytest.raises(FatalError, match=f"^Orders: .*{said}"):
        decode(Orders, {**encode(Orders()), **change})


def test_secrets_are_not_in_the_text_of_a_message() -> None:
    """The repr of a message has no secrets, because a log or traceback may show it."""
    for message in MESSAGES:
        assert "hunter2" not in repr(message)


def test_orders_follow_the_reports_of_tasks() -> None:
    """Successors receive stopped partitions and running searches; a resumed partition is free."""
    stopped = Orders(topics={"a": "A.a"}).after(
        TaskReport(stopped={ORDERS: "why"}, suspects={ORDERS: SUSPECT})
    )
    resumed = stopped.after(TaskReport(resumed=(ORDERS,)))

    assert (stopped.stopped, stopped.suspects) == ({ORDERS: "why"}, {ORDERS: SUSPECT})
    assert (resumed.stopped, resumed.topics) == ({}, {"a": "A.a"})


def test_a_partition_that_stops_again_is_stopped() -> None:
    """A partition that resumed and stopped within one report is stopped."""
    orders = Orders(stopped={ORDERS: "old"})

    assert orders.after(TaskReport(resumed=(ORDERS,), stopped={ORDERS: "new"})).stopped == {
        ORDERS: "new"
    }
