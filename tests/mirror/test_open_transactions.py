"""A transaction of the source that stays open hides records; every verb says so."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from confluent_kafka import Producer

from eos_mirror.testing import wait_until
from tests.mirror.command_line import status
from tests.mirror.conftest import Site
from tests.mirror.proofs import DIFFERENT, verify
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

BEFORE, BEHIND = 10, 1_000
TEXT = f"a transaction is open since offset {BEFORE}, begun "
HIDDEN = f"{BEHIND + 1:,} offsets wait"


@pytest.fixture
def site(site: Site) -> Site:
    """All records go into one partition of the topic."""
    return Site(**{**vars(site), "partitions": 1})


@contextmanager
def open_transaction(site: Site) -> Iterator[Producer]:
    """Hide records of partition 0 behind an open transaction; the block may end it."""
    producer = Producer(
        {
            **site.source.client_config(),
            "transactional.id": uuid.uuid4().hex,
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(site.topic, b"first", partition=0)
    producer.flush(10)
    site.produce(BEHIND, start=BEFORE)
    yield producer


@pytest.mark.long
def test_every_verb_names_an_open_transaction_of_the_source(site: Site) -> None:
    """`--once` exits with 1 and `verify` with 3 until it ends; then all of them are content."""
    site.produce(BEFORE)
    config = site.config()
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors
    with open_transaction(site) as producer:
        with mirror(config, "--once") as running:
            assert running.wait() == 1, running.errors
        assert not running.found("flow.caught_up")
        (incomplete,) = running.found("flow.incomplete")
        assert incomplete["open_transactions"].keys() == {f"{site.topic}-0"}
        (line,) = running.errors
        assert f"{site.topic}-0 of {site.flow.source}: {TEXT}" in line
        assert HIDDEN in line

        (partition,) = [
            one
            for one in json.loads(status(config, "--json"))["partitions"]
            if one["source"] == f"{site.topic}-0"
        ]
        assert (partition["position"], partition["lag"]) == (BEFORE, BEHIND + 1)
        assert partition["open_transaction"]["since"] == BEFORE
        assert partition["open_transaction"]["hidden"] == BEHIND + 1
        assert f"{site.topic}-0: {TEXT}" in status(config)

        code, _, said = verify(site)
        assert code == DIFFERENT
        assert f"not compared: {site.topic}-0 [{BEFORE}, {BEFORE + BEHIND + 1}): behind" in said
        last = f"{site.flow}: {BEFORE} records match, no difference, but 1 partition not fully"
        assert f"{last} compared" in said.splitlines()
        producer.commit_transaction(10)

    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors
    assert running.found("flow.caught_up")
    assert "lag 0" in status(config)
    code, _, said = verify(site)
    assert code == 0
    last = f"{site.flow}: {BEFORE + BEHIND + 1} records match, no difference"
    assert last in said.splitlines()


def test_a_transaction_that_ends_soon_holds_a_run_with_once_up(site: Site) -> None:
    """What was hidden at the start is mirrored when the transaction ends during the run."""
    site.produce(BEFORE)
    with (
        open_transaction(site) as producer,
        mirror(site.config(), "--once") as running,
    ):
        wait_until(
            lambda: site.view.positions(site.remote, 1) == {0: BEFORE},
            within=timedelta(seconds=60),
            what="everything before the transaction",
        )
        producer.commit_transaction(10)
        assert running.wait() == 0, running.errors
    assert running.found("flow.caught_up")
    assert site.compare().matched == BEFORE + BEHIND + 1
