"""Clusters with mutual TLS: brokers and clients have keys."""

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.client import MirrorClient
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import set_group_offsets
from eos_mirror.ports import GroupOffset
from eos_mirror.testing import KafkaCluster, Security, wait_until
from tests.mirror.command_line import CONFIGURATION, refused
from tests.mirror.conftest import Site, make_site
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

SOON = timedelta(seconds=60)


@pytest.fixture(scope="module")
def sealed(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Source and target in one. Clients without a key are refused."""
    with KafkaCluster(name="sealed", security=Security.TLS) as cluster:
        yield cluster


def config_of(site: Site, cluster: KafkaCluster, *leave_out: str, **extra: object) -> Path:
    """Write a configuration with the settings of a Java client, once for both aliases."""
    config = site.config(**extra)
    with config.open("a") as file:
        for key, value in cluster.java_properties().items():
            if not key.startswith(("bootstrap.servers", *leave_out)):
                file.write(f"{key} = {value}\n")
    return config


@pytest.mark.parametrize("data_path", ["client", "auto"])
def test_clusters_that_speak_tls_are_mirrored_with_java_settings(
    tmp_path: Path, sealed: KafkaCluster, data_path: str
) -> None:
    """Records, heartbeats and groups are mirrored: every client of the mirror presents its key."""
    site = make_site(tmp_path, sealed, sealed)
    site.produce(2_000)
    partitions = {
        TopicPartition(site.topic, p): GroupOffset(position=Position(100, None), metadata="")
        for p in range(site.partitions)
    }
    set_group_offsets(sealed.admin(), "readers", partitions, side=Side.SOURCE)
    config = config_of(
        site,
        sealed,
        data_path=data_path,
        emit_checkpoints_enabled="true",
        emit_checkpoints_interval_seconds=1,
        sync_group_offsets_enabled="true",
        emit_heartbeats_enabled="true",
        heartbeats_replication_enabled="true",
        emit_heartbeats_interval_seconds=1,
        heartbeats_topic_replication_factor=1,
    )
    client = MirrorClient(sealed.client_config())
    with client, mirror(config) as running:
        site.wait_caught_up()
        running.wait_for("checkpoints.emitted")
        wait_until(lambda: bool(client.heartbeat_topics()), within=SOON, what="heartbeats")
        assert running.stop() == 0, running.errors
        told = client.remote_consumer_offsets("readers", site.flow.source, timeout=SOON)
        assert len(told) == site.partitions
    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 2_000


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_key_stores_and_trust_stores_of_java_are_used_as_they_are(
    tmp_path: Path, sealed: KafkaCluster, kind: str
) -> None:
    """Every client presents the key of the store and trusts the certificate of the trust store."""
    if kind == "PKCS12":
        pytest.importorskip("cryptography")
    site = make_site(tmp_path, sealed, sealed)
    site.produce(200)
    given = sealed.java_properties()
    password = given["ssl.keystore.password"]
    for words in (
        ["-importkeystore", "-srckeystore", given["ssl.keystore.location"], "-srcstorepass",
         password, "-destkeystore", "k", "-deststoretype", kind, "-deststorepass", password],
        ["-importcert", "-alias", "brokers", "-file", given["ssl.truststore.location"],
         "-keystore", "t", "-storetype", kind, "-storepass", password],
    ):  # fmt: skip
        command = ["keytool", *words, "-noprompt"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    config = config_of(site, sealed, "ssl.")
    with config.open("a") as file:
        for name, store in (("keystore", "k"), ("truststore", "t")):
            file.write(f"ssl.{name}.location = {tmp_path / store}\n")
            file.write(f"ssl.{name}.password = {password}\n")

    with mirror(config) as running:
        site.wait_caught_up()
        assert running.stop() == 0, running.errors
    compared = site.compare()
    assert compared.exact, compared
    assert compared.matched == 200


@pytest.mark.parametrize(
    ("left_out", "says"),
    [
        ("ssl.keystore", ["does not answer", "certificate", "security.protocol"]),
        ("ssl.truststore", ["is not accepted", "certificate", "ssl.truststore.location"]),
    ],
)
def test_a_key_that_is_missing_is_said_in_a_line_for_each_cluster(
    tmp_path: Path, sealed: KafkaCluster, left_out: str, says: list[str]
) -> None:
    """The line names the address, what was refused, and the key to correct."""
    site = make_site(tmp_path, sealed, sealed)
    config = config_of(site, sealed, left_out, cluster_connect_timeout_ms=3000)

    says = [f".bootstrap.servers={sealed.bootstrap}", *says]
    refused(config, code=CONFIGURATION, says=says, lines_count=2)
