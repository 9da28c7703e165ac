"""`status` names each situation, and nothing claims health; after the repair all is well."""

import json
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from eos_mirror.testing import KafkaCluster, wait_until
from tests.mirror.command_line import status, status_and_code
from tests.mirror.conftest import Site, make_site
from tests.mirror.refused_records import configure, offer
from tests.mirror.rights import allow_again, deny, guarded_cluster, login
from tests.mirror.surgery import delete_topic
from tests.mirror.toolbox import mirror, produce

pytestmark = [pytest.mark.brokers, pytest.mark.long]

SOON_S = 60.0
OFTEN = {"refresh_topics_interval_seconds": 1, "session_timeout_ms": 6_000}


def seen(config: Path) -> tuple[Mapping[str, Any], int]:
    """Return the object of the only flow, and the exit code of `status`."""
    text, code = status_and_code(config, "--json")
    found: Mapping[str, Any] = json.loads(text)
    return found, code


def wait_for_state(config: Path, state: str, *, code: int) -> Mapping[str, Any]:
    """Wait until the flow is in this state; return it. The exit code must go with the state."""
    deadline = time.monotonic() + SOON_S
    flow, found = seen(config)
    while flow["state"] != state:
        assert time.monotonic() < deadline, f"not {state}: {flow}"
        flow, found = seen(config)
    assert found == code, flow
    return flow


def of(flow: Mapping[str, Any], partition: str) -> Mapping[str, Any]:
    """Return the object of a partition."""
    (found,) = [one for one in flow["partitions"] if one["source"] == partition]
    return dict(found)


def healthy(config: Path) -> Mapping[str, Any]:
    """Wait until `status` says that everything is mirrored."""
    flow = wait_for_state(config, "mirroring", code=0)
    assert {one["state"] for one in flow["partitions"]} == {"mirroring"}
    assert {one["reason"] for one in flow["partitions"]} == {""}
    return flow


def test_a_flow_is_not_running_before_after_and_when_it_was_killed(site: Site) -> None:
    """While it runs, `status` says where, since when, and with which configuration."""
    site.produce(40)
    config = site.config(**OFTEN)
    assert wait_for_state(config, "not running", code=1)["run"] is None

    with mirror(config) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        run = healthy(config)["run"]
        assert (run["host"], run["pid"]) == (socket.gethostname(), running.process.pid)
        assert (run["standbys"], run["is_of_this_file"]) == (0, True)
        said = status(config)
        assert f"{site.flow}: mirroring, exactly-once, 4 partitions, lag 0\n" in said
        assert f"  run: {socket.gethostname()}, process {running.process.pid}, since " in said
        assert f"  {site.topic}: 4 partitions, lag 0: 4 mirroring\n" in said

        with mirror(config) as second:
            second.wait_for("driver.waiting")
            assert healthy(config)["run"]["standbys"] == 1
            assert ", 1 on standby\n" in status(config)
            assert second.stop() == 0, second.errors

        config = site.config(**OFTEN, tasks_max=3)
        assert not healthy(config)["run"]["is_of_this_file"]
        assert "another configuration than this file" in status(config)

        running.process.send_signal(signal.SIGKILL)
        running.process.wait(10)
        killed = wait_for_state(config, "not running", code=1)
        assert {one["state"] for one in killed["partitions"]} == {"not running"}


def test_a_stopped_partition_is_failed_until_it_resumes(site: Site) -> None:
    """With its cause, since when, and its true lag; after the repair nothing is left of it."""
    remote = f"{site.flow.source}.{site.topic}-picky"
    site.source.create_topic(f"{site.topic}-picky", 1)
    site.produce(40)
    config = site.config(**OFTEN)
    with mirror(config) as running:
        running.wait_for("ready")
        configure(site.target, remote, "max.message.bytes=2000")
        offer(site, f"{site.topic}-picky", [(b"k", b"x" * 5_000), (b"k", b"after")])
        stopped = running.wait_for("partition.stopped")
        running.wait_for("degraded")

        flow = wait_for_state(config, "failed", code=1)
        failed = of(flow, f"{site.topic}-picky-0")
        assert (failed["state"], failed["cause"]) == ("failed", "RecordRefused")
        assert (failed["reason"], failed["lag"]) == (stopped["reason"], 2)
        assert failed["since"] is not None
        assert of(flow, f"{site.topic}-0")["state"] == "mirroring"
        assert f"{site.topic}-picky-0: failed since " in status(config)
        assert "4 mirroring" in status(config)

        configure(site.target, remote, "max.message.bytes=20000")
        running.wait_for("ready", count=2)
        assert of(healthy(config), f"{site.topic}-picky-0")["lag"] == 0
        assert running.stop() == 0, running.errors


@pytest.mark.parametrize("count", [40, 4_000], ids=["shorter", "longer"])
def test_a_topic_that_was_created_again_is_failed(site: Site, count: int) -> None:
    """Whether or not its new log is longer than the position, its lag is the whole log."""
    other = f"{site.topic}-other"
    site.source.create_topic(other, 1)
    site.produce(400)
    config = site.config(**OFTEN)
    with mirror(config) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        delete_topic(site.source, site.topic)
        site.source.create_topic(site.topic, site.partitions)
        site.produce(count)
        running.wait_for("partition.stopped")
        wait_until(
            lambda: {one["lag"] for one in seen(config)[0]["partitions"]} == {0, count // 4},
            within=timedelta(seconds=SOON_S),
            what="the lag of the new log",
        )

        flow = wait_for_state(config, "failed", code=1)
        states = {one["source"]: one["state"] for one in flow["partitions"]}
        again = {f"{site.topic}-{p}": "failed" for p in range(site.partitions)}
        assert states == {**again, f"{other}-0": "mirroring"}
        running.wait_for("degraded")
        assert running.stop() == 1, running.errors


def test_an_open_transaction_of_the_source_is_waited_for(site: Site) -> None:
    """The partition is healthy, but its end is not mirrored, and `status` says so."""
    config = site.config(**OFTEN)
    with mirror(config) as running:
        running.wait_for("ready")
        producer = Producer(
            {**site.source.client_config(), "transactional.id": f"open-{site.topic}"}
        )
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce(site.topic, b"first", partition=0)
        producer.flush(10)
        produce(site.source, site.topic, 40, partitions=site.partitions)

        flow = wait_for_state(config, "waiting", code=0)
        waiting = of(flow, f"{site.topic}-0")
        assert "a transaction is open since offset 0" in waiting["reason"]
        assert (waiting["lag"], waiting["open_transaction"]["since"]) == (11, 0)
        producer.commit_transaction(10)
        site.wait_caught_up()
        healthy(config)
        assert running.stop() == 0, running.errors


def test_a_refused_topic_makes_a_flow_failed(site: Site) -> None:
    """It has no partitions to show, so the flow says it."""
    twin = f"{site.topic}-twin"
    in_the_way = f"{site.flow.source}_{twin}"  # differs from the remote name only in `_` and `.`
    site.target.create_topic(in_the_way, 1)
    site.source.create_topic(twin, 1)
    site.produce(40)
    config = site.config(**OFTEN)
    with mirror(config) as running:
        running.wait_for("degraded")
        flow = wait_for_state(config, "failed", code=1)
        assert {one["state"] for one in flow["partitions"]} == {"mirroring"}
        assert flow["refused"].keys() == {twin}
        delete_topic(site.target, in_the_way)
        running.wait_for("ready")
        healthy(config)
        assert running.stop() == 0, running.errors


@pytest.fixture(scope="module")
def guarded(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A cluster with access control; a test denies rights on names of its own flow only."""
    with guarded_cluster() as cluster:
        yield cluster


@pytest.mark.parametrize("hidden", ["drivers", "tasks", "ledger"])
def test_a_state_that_may_not_be_seen_is_unknown(
    tmp_path: Path, guarded: KafkaCluster, hidden: str
) -> None:
    """It is not taken for health: the line names the right that is missing."""
    site = make_site(tmp_path, guarded, guarded)
    site.produce(40)
    kind, name = {
        "drivers": (ResourceType.GROUP, site.flow.drivers_group),
        "tasks": (ResourceType.GROUP, site.flow.source_group),
        "ledger": (ResourceType.TOPIC, site.flow.ledger_topic),
    }[hidden]
    resource = (kind, name, ResourcePatternType.LITERAL)
    guarded.create_topic(site.flow.ledger_topic, 1)
    config = login(site)
    with mirror(config) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        deny(guarded, resource, AclOperation.DESCRIBE)
        flow = wait_for_state(config, "unknown", code=1)
        assert all(name in one["reason"] for one in flow["partitions"])
        allow_again(guarded, resource, AclOperation.DESCRIBE)
        healthy(config)
        assert running.stop() == 0, running.errors
