"""Kafka's own classes say which names and tags MirrorMaker 2's metrics have in each format."""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from eos_mirror.driver.metric_names import CHECKPOINT_CONNECTOR, SOURCE_CONNECTOR
from eos_mirror.errors import ConfigError
from eos_mirror.settings.keys import ROWS
from eos_mirror.settings.load import load_settings
from eos_mirror.telemetry.metrics import METRICS, Metric, Of
from eos_mirror.testing.installation import find_installation

ORACLE: Final = Path(__file__).with_name("MetricNames.java")
VALUES: Final = ("legacy", "new", "legacy,new", "new, legacy", "both", "", "Legacy", "legacy;new")
CONNECTORS: Final = {
    Of.SOURCE_CONNECTOR: SOURCE_CONNECTOR,
    Of.CHECKPOINT_CONNECTOR: CHECKPOINT_CONNECTOR,
}
TAGS: Final = {
    Of.PARTITION: {"source", "target", "topic", "partition"},
    Of.FLOW: {"source", "target"},
    Of.SOURCE_CONNECTOR: {"connector", "task", "source", "target", "topic", "partition"},
    Of.CHECKPOINT_CONNECTOR: {"connector", "task", "source", "target"},
}
PER_GROUP: Final = {"group", "topic", "partition"}
"""Tags of checkpoints that we leave out: Kafka shows one value under all of them."""


@pytest.fixture(scope="module")
def said() -> list[list[str]]:
    """What Kafka's classes say, by line and column."""
    command = find_installation().command(
        str(ORACLE), *VALUES, flags=["-XX:TieredStopAtLevel=1", "-Dslf4j.internal.verbosity=ERROR"]
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]


def ours(begins: str) -> Iterable[Metric]:
    """Return our metrics of one format."""
    return (metric for metric in METRICS if metric.name.startswith(begins))


@pytest.mark.parametrize(
    ("format_", "begins"),
    [("legacy", "kafka.connect.mirror."), ("new", "kafka.connect.")],
)
def test_names_and_tags_are_kafkas(said: list[list[str]], format_: str, begins: str) -> None:
    """A board for MirrorMaker 2 finds every metric, whatever the format."""
    kafkas = {
        (f"{begins}{group.lower()}.{name}", frozenset(tags.split(",")), connector)
        for kind, group, name, tags, connector in (line for line in said if len(line) == 5)
        if kind == format_
    }
    assert len(kafkas) == 16

    found = set()
    for metric in ours(f"{begins}plugins." if format_ == "new" else begins):
        tags = TAGS[metric.of]
        if metric.of in {Of.FLOW, Of.CHECKPOINT_CONNECTOR}:
            tags = tags | PER_GROUP
        found.add((metric.name, frozenset(tags), CONNECTORS.get(metric.of, "")))

    assert found == kafkas


def test_the_key_accepts_what_kafka_accepts(said: list[list[str]], tmp_path: Path) -> None:
    """A configuration of MirrorMaker 2 means the same here, and its default is ours."""
    kafkas = {text: answer for answer, text in (line for line in said if len(line) == 2)}
    default = ROWS["metric.names.formats"].key.default
    assert kafkas.pop(f"[{default}]") == "default"
    assert set(kafkas) == set(VALUES)

    for text, answer in kafkas.items():
        path = tmp_path / "mm2.properties"
        path.write_text(
            "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n"
            f"A->B.enabled = true\nmetric.names.formats = {text}\n"
        )
        if answer == "accepted":
            assert load_settings(path).flows[0].name_formats
        else:
            with pytest.raises(ConfigError, match=r"metric\.names\.formats"):
                load_settings(path)
