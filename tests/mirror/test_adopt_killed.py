"""A takeover that is killed at any step and run again ends as if it had not been killed."""

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eos_mirror.core.connect_connectors import connector_facts, records_that_stop
from eos_mirror.core.connect_offsets import SOURCE_CONNECTOR, Owner, next_offsets, offsets_topic
from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.mm2_workers import dedicated_mm2
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.kafka.topic_reader import TopicReader, read_log
from tests.mirror.conftest import Site
from tests.mirror.killed_verb import verb
from tests.mirror.proofs import verify
from tests.mirror.takeovers import ALL, COPIED, copied_by_another
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

ADOPT = "eos_mirror.operate.takeover"
STEPS = {
    "nothing is written": (ADOPT, "_refuse"),
    "the internal topics exist": (ADOPT, "note"),
    "the ledger has its entry": (ADOPT, "switch_of"),
    "the partitions are claimed": ("eos_mirror.operate.carry_positions", "Switch._owned"),
    "the positions are committed": ("eos_mirror.replication.ownership", "Ownership.release"),
    "the claims are released": ("eos_mirror.kafka.flow_mode", "FlowMode.replace"),
}
"""What is done when a process is killed, and where it is killed."""

HAND_OVER = "eos_mirror.operate.hand_over"
HAND_OVER_STEPS = {
    "the partitions are claimed": (HAND_OVER, "note"),
    "the ledger has its entry": ("eos_mirror.kafka.flow_mode", "FlowMode.replace"),
    "the flow is marked": (HAND_OVER, "append_records"),
    "the positions are stored": ("eos_mirror.replication.ownership", "Ownership.release"),
    "the claims are released": ("eos_mirror.driver.mm2_workers", "Mm2Workers.start"),
}


def adopt(
    config: Path, site: Site, *more: str, to: str = "", killed: Sequence[str] = ()
) -> "subprocess.CompletedProcess[str]":
    """Run `adopt --from mm2`, or to where `to` says; `killed` says where it is killed."""
    direction = ["--to", to] if to else ["--from", "mm2", "--quiet", "0.5"]
    return verb("adopt", str(config), str(site.flow), *direction, *more, killed=killed)


def produce_keyed(site: Site, topic: str, records: Sequence[tuple[str, str]]) -> None:
    """Write records to the only partition of a topic on the target."""
    producer = Producer(site.target.client_config())
    for key, value in records:
        producer.produce(topic, value, key)
    assert producer.flush(30) == 0


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_takeover_is_run_again(site: Site, step: str) -> None:
    """The copy equals the source, and the ledger names the positions."""
    site.produce(ALL)
    copied_by_another(site)
    config = site.config()

    assert adopt(config, site, killed=STEPS[step]).returncode == -signal.SIGKILL
    again = adopt(config, site)
    assert again.returncode == 0, again.stderr

    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors
    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == ALL
    entries = read_ledger(site.target.client_config(), site.flow)
    entry = [one for one in entries if one.kind is Kind.MODE][-1]
    at = COPIED // site.partitions
    assert entry.details["positions"] == {f"{site.topic}-{p}": at for p in range(site.partitions)}


@pytest.mark.parametrize("step", HAND_OVER_STEPS)
def test_a_killed_hand_over_is_run_again(site: Site, step: str) -> None:
    """MirrorMaker 2 finds every position, and may start."""
    site.produce(ALL)
    config, configs = site.config(), dedicated_mm2(site.flow).config_topic
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors
    site.target.create_topic(configs, 1)
    produce_keyed(site, configs, [(f"connector-{SOURCE_CONNECTOR}", "{}")])
    produce_keyed(site, configs, records_that_stop(SOURCE_CONNECTOR))

    killed = adopt(config, site, to="mm2", killed=HAND_OVER_STEPS[step])
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = adopt(config, site, to="mm2")
    assert again.returncode == 0, again.stderr

    with mirror(config) as refused:
        assert refused.wait() == 4
    client, group = site.target.client_config(), site.flow.shadow_group
    stored = TopicReader(client, offsets_topic(site.flow.source), group=group).updates()
    at = ALL // site.partitions
    assert next_offsets(stored, Owner(SOURCE_CONNECTOR, site.flow.source)) == {
        TopicPartition(site.topic, number): at for number in range(site.partitions)
    }
    state = connector_facts(read_log(client, configs, group=group), SOURCE_CONNECTOR)
    assert (state.exists, state.is_stopped) == (True, False)


def test_copies_of_a_connect_cluster_are_taken_over(site: Site) -> None:
    """The names of the connector, the group and the topics are those that its owner chose."""
    site.produce(ALL)
    stored_in, connector = f"offsets-{site.topic}", "A->B.MirrorSourceConnector"
    copied_by_another(site, stored_in, connector=connector)
    config = site.config()
    names = ["--connector", connector, "--connect-group", "connect", "--offsets-topic", stored_in]

    refused = adopt(config, site, *names)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
    assert "--config-topic" in refused.stderr
    configs = f"configs-{site.topic}"
    site.target.create_topic(configs, 1)
    names += ["--config-topic", configs]
    produce_keyed(site, configs, [(f"connector-{connector}", "{}")])
    refused = adopt(config, site, *names)
    assert (refused.returncode, refused.stderr.count("\n")) == (4, 1), refused.stderr
    assert f"PUT /connectors/{connector}/stop" in refused.stderr
    produce_keyed(site, configs, records_that_stop(connector))
    adopted = adopt(config, site, *names)

    assert adopted.returncode == 0, adopted.stderr
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors
    assert site.compare().exact
    code, topics, text = verify(site)  # the map does not cover what was taken over
    assert (code, topics[0]["matched"]) == (0, ALL - COPIED), text
