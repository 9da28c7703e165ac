"""Connectors of MirrorMaker 2 as JSON become a configuration that loads."""

import json
from pathlib import Path
from typing import Any

import pytest

from eos_mirror.errors import ConfigError
from eos_mirror.settings.connectors import convert_connectors
from eos_mirror.settings.converted import settle
from tests.settings.conversion import from_connect

PACKAGE = "org.apache.kafka.connect.mirror"
CLUSTERS = {
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
}


def connector(kind: str = "Source", **config: Any) -> dict[str, Any]:
    """Return a connector; two underscores in a name stand for a dot."""
    own = {name.replace("__", "."): value for name, value in config.items()}
    return {
        "name": f"mm2-{kind.lower()}",
        "config": {"connector.class": f"{PACKAGE}.Mirror{kind}Connector", **CLUSTERS, **own},
    }


def test_the_connectors_of_a_pair_become_one_flow(tmp_path: Path) -> None:
    """Each setting counts from the connector that decides it, whatever the form of the file."""
    source = connector(
        tasks__max=7, topics="a,b", target__cluster__security__protocol="SSL",
        source__consumer__fetch__max__bytes=9, producer__override__linger__ms=3,
    )  # fmt: skip
    checkpoint = connector("Checkpoint", tasks__max=2, topics="c", groups="g", emit__x=True)
    heartbeat = connector("Heartbeat", emit__heartbeats__interval__seconds=5)
    printed = from_connect(
        json.dumps([source, checkpoint["config"]]),
        json.dumps({"mm2-heartbeat": {"info": heartbeat, "status": {}}}),
        folder=tmp_path,
    )
    flow, (pair,) = printed.flow, printed.settings.heartbeats

    assert str(flow.flow) == "A->B"
    assert flow.tasks_max == 7
    assert [one.pattern for one in flow.topics] == ["a", "b"]
    assert [one.pattern for one in flow.groups.include] == ["g"]
    assert flow.clients.target_producer["security.protocol"] == "SSL"
    assert flow.clients.target_producer["linger.ms"] == "3"
    assert flow.clients.source_consumer["fetch.max.bytes"] == "9"
    assert pair.interval.total_seconds() == 5
    assert printed.not_taken == {
        "0.json[1].tasks.max": "one process emits the checkpoints of a flow",
        "0.json[1].topics": "mm2-source.config.topics decides it",
        "0.json[1].emit.x": "the MirrorSourceConnector decides it, and does not set it",
    }


def test_other_connectors_and_words_of_kafka_connect_are_reported(tmp_path: Path) -> None:
    """What `GET /connectors/NAME` adds is no configuration."""
    answer = {**connector(), "tasks": [{"task": 0}], "type": "source"}
    other = {"name": "sink", "config": {"connector.class": "FileStreamSink"}}
    printed = from_connect(json.dumps([answer, other]), folder=tmp_path)

    assert printed.not_taken == {
        "mm2-source.tasks": "the tasks of Kafka Connect",
        "mm2-source.type": "the kind of connector",
        "sink": "is no connector of MirrorMaker 2",
    }


def test_what_kafka_connect_accepts_is_accepted(tmp_path: Path) -> None:
    """Short class names, the default alias of the target, and keys without use in a connector."""
    config = connector(clusters="A, B", bootstrap__servers="x:1")["config"]
    del config["target.cluster.alias"]
    printed = from_connect(
        json.dumps({**config, "connector.class": "MirrorSource"}), folder=tmp_path
    )

    assert str(printed.flow.flow) == "A->target"
    assert printed.not_taken == {
        "0.json[0].clusters": "'clusters' can only be set at top level",
        "0.json[0].bootstrap.servers": "'bootstrap.servers' belongs to a cluster, not to a flow",
    }


def test_config_providers_become_those_of_a_run(tmp_path: Path) -> None:
    """Kafka's own providers keep their paths; others become environment variables."""
    source = connector(
        source__cluster__sasl__mechanism="PLAIN",
        source__cluster__sasl__jaas__config=(
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="${env:USER_A}" password="${secrets:kafka/user-a:password}";'
        ),
        source__consumer__client__rack="${vault:racks:1}",
        source__cluster__client__id="${configmaps:kafka/names:id}",
    )
    printed = from_connect(json.dumps(source), folder=tmp_path)

    assert printed.flow.clients.source_consumer["sasl.password"] == "<USER_A_PASSWORD>"
    assert "#   USER_A_PASSWORD: key password of Secret user-a in namespace kafka\n" in printed.text
    assert "#   NAMES_ID: key id of ConfigMap names in namespace kafka\n" in printed.text
    assert "#   RACKS_1: what ${vault:racks:1} stands for\n" in printed.text


def test_a_file_of_the_workers_need_not_exist_here(tmp_path: Path) -> None:
    """A key store and a `${file:...}` of another machine are printed as they are."""
    source = connector(
        source__cluster__ssl__keystore__location="/nowhere/store.jks",
        source__cluster__ssl__keystore__password="${file:/nowhere/p:k}",
    )
    draft = convert_connectors([("c.json", json.dumps(source))])
    settle(draft)

    assert draft.lines["A", "ssl.keystore.location"].value == "/nowhere/store.jks"
    assert draft.lines["A", "ssl.keystore.password"].value == "${file:/nowhere/p:k}"
    assert draft.needs == {"/nowhere/p": "a path in the pods of Kafka Connect"}
    with pytest.raises(ConfigError, match="cannot be read"):
        from_connect(json.dumps(source), folder=tmp_path)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{", "c.json:1:2: this is no JSON: Expecting property name enclosed in double quotes"),
        ("3", "c.json: c.json[0] has no fields; write it as a mapping"),
        ({"name": "x"}, "c.json: x.config has no fields; write it as a mapping"),
        ({"name": "x", "config": {}}, "c.json: has no connector of MirrorMaker 2; name a file"),
        (connector(topics=["a"]), "c.json: mm2-source.config.topics: expected text, a number"),
        (connector(replication__factor="two"), "c.json: mm2-source.config.replication.factor: "
         "expected a whole number"),
        ([connector(), connector()], "c.json: mm2-source: A->B has another "
         "MirrorSourceConnector; join the two, or convert one at a time"),
        ([connector(), connector("Heartbeat", source__cluster__bootstrap__servers="x:1")],
         "c.json: mm2-heartbeat.config.source.cluster.bootstrap.servers: A.bootstrap.servers has "
         "another value in mm2-source.config.source.cluster.bootstrap.servers; make them equal"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_converted_is_one_clear_line(content: Any, fault: str) -> None:
    """The line names the file, the field and what to do."""
    text = content if isinstance(content, str) else json.dumps(content)
    with pytest.raises(ConfigError) as caught:
        settle(convert_connectors([("c.json", text)]))

    (line,) = caught.value.faults
    assert line.startswith(fault)
