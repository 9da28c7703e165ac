"""MirrorMaker 2's metrics under the names that a flow asks for."""

from eos_mirror.driver.metric_names import (
    CHECKPOINT_CONNECTOR,
    CHECKPOINT_TASK,
    SOURCE_CONNECTOR,
    Row,
    under_legacy_names,
    under_new_names,
)
from eos_mirror.settings.values import NameFormat
from eos_mirror.telemetry.metrics import METRICS, MM2_KEYS, Of

ROW: Row = ({"topic": "A.t", "task": "1"}, {"record-count": 7, "lag.records": 3})


def test_a_flow_with_legacy_names_exports_everything_under_them() -> None:
    """The default is that of Kafka 4.3; the new names may come in addition."""
    for formats in ((NameFormat.LEGACY,), (NameFormat.LEGACY, NameFormat.NEW)):
        assert list(under_legacy_names([ROW], formats)) == [ROW]


def test_a_flow_with_new_names_only_keeps_what_is_not_of_mirrormaker() -> None:
    """The lag has one name."""
    ((attributes, values),) = under_legacy_names([ROW], (NameFormat.NEW,))

    assert attributes == ROW[0]
    assert values == {"lag.records": 3}


def test_a_new_name_has_the_connector_and_the_task() -> None:
    """They are the tags of KIP-1280; a row that knows its task keeps it."""
    ((of_source, values),) = under_new_names([ROW], connector=SOURCE_CONNECTOR)
    ((of_checkpoints, _),) = under_new_names(
        [({"source": "A"}, {})], connector=CHECKPOINT_CONNECTOR, task=CHECKPOINT_TASK
    )

    assert of_source == {"topic": "A.t", "task": "1", "connector": "MirrorSourceConnector"}
    assert values == ROW[1]
    assert of_checkpoints == {"source": "A", "task": "0", "connector": "MirrorCheckpointConnector"}


def test_every_metric_of_mirrormaker_has_two_names() -> None:
    """Kafka's group `plugins` has every attribute of both connectors."""
    names = {of: {m.name for m in METRICS if m.of is of} for of in Of}

    new = names[Of.SOURCE_CONNECTOR] | names[Of.CHECKPOINT_CONNECTOR]
    assert new == {f"kafka.connect.plugins.{key}" for key in MM2_KEYS}
    for key in MM2_KEYS:
        connector = "mirrorcheckpoint" if key.startswith("checkpoint-") else "mirrorsource"
        of = Of.FLOW if connector == "mirrorcheckpoint" else Of.PARTITION
        assert f"kafka.connect.mirror.{connector}connector.{key}" in names[of]
