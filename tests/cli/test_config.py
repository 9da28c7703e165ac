"""`eos-mirror config show`: the effective settings and their origins."""

import json
from pathlib import Path

import pytest

from eos_mirror.cli.main import main
from eos_mirror.settings.connect import PREFIXES
from eos_mirror.settings.keys import ROWS
from eos_mirror.settings.load import load_settings
from eos_mirror.settings.model import FlowSettings

FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
B->A.enabled = true
topics = orders, .*\\\\.log
A->B.tasks.max = 4
transaction.timeout.ms = 30000
B.security.protocol = SASL_SSL
B.sasl.mechanism = PLAIN
B.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required \\
    username="mirror" password="${env:SECRET}";
A.consumer.fetch.min.bytes = 17
B->A.start.position = logs.*=latest,  last:10
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a configuration whose secret comes from the environment, and return its path."""
    monkeypatch.setenv("SECRET", "hunter2")
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return path


def shown(file: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[str]]:
    """Return value and origin by key; an origin is without the path of the file."""
    assert main(["config", "show", str(file), *arguments, "--json"]) == 0
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    return {
        line["key"]: [line["value"], line["origin"].replace(f"{file}:", "line ")] for line in lines
    }


def test_values_are_shown_with_their_origin(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every value is shown in the syntax of a configuration file, with its origin."""
    found = shown(file, capsys)
    assert found["A->B.tasks.max"] == ["4", "line 7"]
    assert found["B->A.tasks.max"] == ["1", "default"]
    assert found["A->B.topics"] == [r"orders, .*\.log", "line 6"]
    assert found["A->B.transaction.timeout.ms"] == ["30000", "line 8"]
    assert found["B->A.start.position"] == ["logs.*=latest, last:10", "line 14"]
    assert found["A->B.refresh.topics.interval.seconds"] == ["600", "default"]
    assert found["A->B.replication.policy.class"] == ["DefaultReplicationPolicy", "default"]
    assert found["A->B.transaction.producer"] == ["true", "default"]
    assert found["B->A.emit.heartbeats.enabled"] == ["true", "default"]
    assert found["runtime"] == ["spark", "default"]
    assert found["A.bootstrap.servers"] == ["a:9092", "line 2"]
    assert found["A->B.source.consumer.fetch.min.bytes"] == ["17", "line 13"]
    assert found["A->B.source.consumer.isolation.level"] == ["read_committed", "eos_mirror"]


def test_one_flow_can_be_asked_for(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the name of a flow, only its settings are shown."""
    assert {key.partition(".")[0] for key in shown(file, capsys, "B->A")} == {"B->A"}


def test_secrets_are_not_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Secrets are masked, both in lines and in JSON."""
    assert shown(file, capsys)["A->B.target.admin.sasl.password"][0] == "********"
    assert main(["config", "show", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "A->B.tasks.max = 4  (" in printed
    assert "hunter2" not in printed


def test_each_value_is_shown_in_one_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Line ends, which PEM has, are shown as in a configuration."""
    file.write_text(f"{FILE}B.admin.client.rack = a\\nb\n")
    assert main(["config", "show", str(file)]) == 0
    assert r"A->B.target.admin.client.rack = a\nb  (" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An invalid file is refused with the message of `run`."""
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = A, B\ntopiks = x\n")
    assert main(["config", "show", str(path)]) == 2
    assert "did you mean 'topics'" in capsys.readouterr().err


def test_what_is_shown_can_be_written(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The shown lines are a configuration with the same meaning, including lists and groups."""
    file.write_text(
        f"{FILE}replication.policy.topics.map = raw-(.*):lake.$1, [a,b]{{1,2}}:c\n"
        "topics.exclude = .*-[0-9]{2,4}, \\\\{.*, (x,y)z\nconfig.properties.exclude = [,{]x\n"
        "metrics.exporters = otlp, prometheus\nmetrics.listener = [::1]:99\n"
    )
    lines = [
        f"{key} = {value}\n".replace("\\", "\\\\")
        for key, (value, _) in shown(file, capsys).items()
        if key.endswith(tuple(ROWS)) and not any(p in key for p in PREFIXES.values())
    ]
    copy = file.with_name("copy.properties")
    copy.write_text("clusters = A, B\nA->B.enabled = true\nB->A.enabled = true\n" + "".join(lines))

    written, meant = load_settings(copy), load_settings(file)
    assert written.metrics == meant.metrics
    assert [meanings(flow) for flow in written.flows] == [meanings(flow) for flow in meant.flows]


def meanings(flow: FlowSettings) -> dict[str, object]:
    """Return the settings of a flow without those of its clients."""
    return {name: getattr(flow, name) for name in flow.__slots__ if name != "clients"}
