"""Requests to a coordinator that is found late, and answers that the client misreads."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from eos_mirror.core.records import Position
from eos_mirror.kafka.groups import as_group_offset
from eos_mirror.ports import GroupOffset
from eos_mirror.testing import KafkaCluster
from eos_mirror.testing.faults import Action, Api, Fault
from eos_mirror.testing.proxy import fault_proxies

LATE = timedelta(seconds=1.5)
"""After the first timeout of a request, and before the second."""


@pytest.fixture(scope="module")
def proxied(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """One broker behind a proxy, with a group that a consumer joined and left."""
    with KafkaCluster(name="proxied", proxied=True) as cluster:
        cluster.create_topic("orders", 1)
        cluster.tool(
            "ConsoleConsumer", "--topic", "orders", "--group", "readers", "--timeout-ms", "1000"
        )
        yield cluster


ASKING = {
    "members": "group_members(admin, 'readers', side=Side.SOURCE)",
    "rights": "may_commit_in_group(admin, 'readers')",
}


@pytest.mark.brokers
@pytest.mark.parametrize("question", ASKING)
def test_a_coordinator_that_is_found_late_does_not_end_the_process(
    proxied: KafkaCluster, question: str
) -> None:
    """A request that timed out before its coordinator was found is not freed (librdkafka 4605)."""
    asking = textwrap.dedent(
        f"""
        from confluent_kafka.admin import AdminClient
        from eos_mirror.core.side import Side
        from eos_mirror.kafka.authorization import may_commit_in_group
        from eos_mirror.kafka.groups import group_members
        admin = AdminClient({{"bootstrap.servers": "{proxied.proxied_bootstrap}"}})
        admin.list_topics(timeout=10)  # or it asks a second time on a second connection
        print("answered", {ASKING[question]}, flush=True)
        """
    )
    with fault_proxies(proxied.proxy_ports) as proxies:
        late = proxies[1].inject(Fault(Api.FIND_COORDINATOR, Action.DELAY_REQUEST, delay=LATE))
        asked = subprocess.run(
            [sys.executable, "-c", asking], capture_output=True, text=True, timeout=60, check=False
        )
    assert late.hits == 1
    assert asked.returncode == 0, (asked.returncode, asked.stderr)
    assert asked.stdout.startswith("answered"), asked.stderr


class Found:
    """The client's answer; the client decodes these bytes as text."""

    offset, leader_epoch = 7, 3

    def __init__(self, metadata: bytes | None) -> None:
        self._metadata = metadata

    @property
    def metadata(self) -> str | None:
        """Decode the metadata; raises where the client does."""
        return None if self._metadata is None else self._metadata.decode()


@pytest.mark.parametrize(
    ("read", "metadata"),
    [
        (b"em1:x", "em1:x"),
        (b'{"at":\n "11 h"}', '{"at":\n "11 h"}'),
        ("Größe".encode(), "Größe"),
        (None, ""),
        (b"AgAAAaIYUBxOa\x7f", ""),
        (b"AgAAAaIYUBxO\xad", ""),
    ],
)
def test_an_offset_is_read_whatever_its_metadata_is(read: bytes | None, metadata: str) -> None:
    """Metadata that is not text is dropped, and the offset is kept."""
    found: Any = Found(read)

    assert as_group_offset(found) == GroupOffset(position=Position(7, 3), metadata=metadata)
