"""Converted files of Strimzi and Kafka Connect pass the check of a run, and mirror."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mirror.command_line import checked
from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror

pytest.importorskip("yaml", reason="PyYAML is not installed")
pytestmark = pytest.mark.brokers

V1 = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {{name: mirror}}
spec:
  version: 4.3.0
  replicas: 1
  target:
    alias: {target}
    bootstrapServers: {on_target}
    groupId: connect
    configStorageTopic: configs
    offsetStorageTopic: offsets
    statusStorageTopic: statuses
    config: {{config.storage.replication.factor: 1}}
  mirrors:
  - source: {{alias: {source}, bootstrapServers: '{on_source}'}}
    sourceConnector:
      tasksMax: 2
      config: {{replication.factor: 1, offset-syncs.topic.replication.factor: 1}}
    checkpointConnector:
      config: {{checkpoints.topic.replication.factor: 1}}
    topicsPattern: {topic}
    groupsPattern: '.*'
"""
V1BETA2 = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {{name: mirror}}
spec:
  connectCluster: {target}
  clusters:
  - {{alias: {source}, bootstrapServers: '{on_source}'}}
  - alias: {target}
    bootstrapServers: {on_target}
    config: {{offset.storage.replication.factor: 1}}
  mirrors:
  - sourceCluster: {source}
    targetCluster: {target}
    sourceConnector: {{config: {{replication.factor: 1}}}}
    topicsPattern: {topic}
"""
OURS = """\
runtime = local
internal.topic.replication.factor = 1
internal.topic.min.insync.replicas = 1
"""


def converted(site: Site, action: str, text: str) -> Path:
    """Convert a file, and add what has no counterpart there: the settings of a single broker."""
    source = site.folder / "theirs"
    source.write_text(text)
    command = [sys.executable, "-m", "eos_mirror.cli.main", "config", action, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    file = site.folder / "mm2.properties"
    file.write_text(done.stdout + OURS)
    return file


def mirrors_exactly(site: Site, file: Path) -> None:
    """Check the file, and mirror what the source has."""
    (plan,) = [one for one in checked(file) if "topics" in one]
    assert plan["topics"] == {site.topic: site.remote}
    site.produce(100)
    with mirror(file, "--once") as running:
        assert running.wait() == 0, running.errors
    assert site.compare().exact


@pytest.mark.parametrize("form", [V1, V1BETA2], ids=["v1", "v1beta2"])
def test_a_resource_of_strimzi_becomes_a_file_that_mirrors(site: Site, form: str) -> None:
    """Only the number of brokers has to be said."""
    text = form.format(
        source=site.flow.source,
        target=site.flow.target,
        on_source=site.source.bootstrap,
        on_target=site.target.bootstrap,
        topic=site.topic,
    )
    mirrors_exactly(site, converted(site, "from-strimzi", text))


def test_a_connector_becomes_a_file_that_mirrors(site: Site) -> None:
    """As it is posted to Kafka Connect."""
    connector = {
        "name": "mirror",
        "config": {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "source.cluster.alias": site.flow.source,
            "target.cluster.alias": site.flow.target,
            "source.cluster.bootstrap.servers": site.source.bootstrap,
            "target.cluster.bootstrap.servers": site.target.bootstrap,
            "topics": site.topic,
            "tasks.max": "2",
            "replication.factor": "1",
        },
    }
    mirrors_exactly(site, converted(site, "from-connect", json.dumps(connector)))
