"""`eos-mirror config from-strimzi | from-connect`: a file on stdout, what is missing on stderr."""

import io
import json
from pathlib import Path

import pytest

from eos_mirror.cli.main import main

MIRROR = """\
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  replicas: 1
  target: {alias: B, bootstrapServers: 'b:9092'}
  mirrors:
  - source: {alias: A, bootstrapServers: 'a:9092'}
    sourceConnector: {tasksMax: 2}
"""
CONNECTOR = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
    "key.converter": "x.Y",
}


def test_a_resource_is_printed_as_a_file_that_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """stdout can be saved as it is; each field that was not taken over is a line on stderr."""
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    (tmp_path / "mirror.yaml").write_text(MIRROR)

    assert main(["config", "from-strimzi", str(tmp_path / "mirror.yaml")]) == 0
    said = capsys.readouterr()
    (tmp_path / "mm2.properties").write_text(said.out)

    assert said.err == (
        "eos-mirror: not taken over: spec.replicas: a run has no workers: tasks.max counts the "
        "tasks, and more runs stand by\n"
    )
    assert main(["config", "show", str(tmp_path / "mm2.properties"), "A->B"]) == 0
    assert "A->B.tasks.max = 2  (" in capsys.readouterr().out


def test_connectors_are_read_from_stdin(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-` stands for stdin, so the answer of Kafka Connect can be piped."""
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(CONNECTOR)))

    assert main(["config", "from-connect", "-"]) == 0
    said = capsys.readouterr()
    assert "\nA.bootstrap.servers = a:9092\n" in said.out
    assert "not taken over: stdin[0].key.converter: no effect here" in said.err


@pytest.mark.parametrize("action", ["from-strimzi", "from-connect"])
def test_nothing_is_printed_if_a_file_cannot_be_read(
    action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2, stdout is empty, and the line says what to correct."""
    assert main(["config", action, "/nowhere"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "eos-mirror: /nowhere: cannot be read: No such file or directory; correct the path\n"
    )
