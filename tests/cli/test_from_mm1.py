"""`config from-mm1` reads the flags and files of kafka-mirror-maker.sh."""

from pathlib import Path

import pytest

from eos_mirror.cli.main import main
from eos_mirror.settings import Settings, load_settings

CONSUMER = """\
bootstrap.servers = a1:9092, a2:9092
group.id = mirror-maker
security.protocol = SSL
fetch.max.bytes = 1000000
auto.offset.reset = earliest
enable.auto.commit = false
key.deserializer = org.apache.kafka.common.serialization.ByteArrayDeserializer
"""
PRODUCER = """\
bootstrap.servers = b1:9092
linger.ms = 7
producer.type = sync
"""


class Converted:
    """What the verb printed, and what the loader makes of it."""

    def __init__(self, folder: Path, out: str, err: str) -> None:
        self.text, self.errors = out, err.splitlines()
        path = folder / "mm2.properties"
        path.write_text(out)
        self.settings: Settings = load_settings(path)
        (self.flow,) = self.settings.flows


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The flags that name the two files."""
    for name, text in (("consumer", CONSUMER), ("producer", PRODUCER)):
        (tmp_path / f"{name}.properties").write_text(text)
    return [
        "config", "from-mm1",
        "--consumer.config", str(tmp_path / "consumer.properties"),
        "--producer.config", str(tmp_path / "producer.properties"),
    ]  # fmt: skip


def converted(
    files: list[str], *flags: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> Converted:
    """Convert, and load what was printed."""
    assert main([*files, *flags]) == 0
    found = capsys.readouterr()
    return Converted(folder, found.out, found.err)


def test_a_command_line_becomes_one_flow_that_copies_records_only(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Topics keep their names, and nothing but records is copied."""
    flags = ("--include", "'orders.*, users'", "--num.streams", "4")
    printed = converted(files, *flags, folder=tmp_path, capsys=capsys)
    flow = printed.flow

    assert str(flow.flow) == "source->target"
    assert [one.pattern for one in flow.topics] == ["orders.*|users"]
    assert (flow.tasks_max, flow.replication_policy) == (4, "IdentityReplicationPolicy")
    assert flow.replication_factor is None
    assert flow.exactly_once
    assert not any(
        (
            flow.heartbeats_replicated,
            flow.groups.emit_checkpoints,
            flow.sync_configs,
            flow.sync_acls,
            flow.quarantine,
        )
    )
    assert not printed.settings.heartbeats
    assert not printed.settings.notes
    servers = {one.alias: one.bootstrap_servers for one in printed.settings.clusters}
    assert servers == {"source": ("a1:9092", "a2:9092"), "target": ("b1:9092",)}
    assert flow.clients.source_consumer["security.protocol"] == "SSL"
    assert flow.clients.source_consumer["fetch.max.bytes"] == "1000000"
    assert flow.clients.target_producer["linger.ms"] == "7"
    assert "eos-mirror adopt FILE 'source->target' --from group:mirror-maker --plan" in printed.text


def test_what_has_no_counterpart_is_named_with_its_place(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line for each."""
    flags = ("--whitelist", ".*", "--offset.commit.interval.ms", "5000", "--new.consumer")
    printed = converted(files, *flags, folder=tmp_path, capsys=capsys)

    consumer, producer = tmp_path / "consumer.properties", tmp_path / "producer.properties"
    assert [line.split(": ")[2] for line in printed.errors] == [
        f"{consumer}:2 group.id",
        f"{consumer}:5 auto.offset.reset",
        f"{consumer}:6 enable.auto.commit",
        f"{consumer}:7 key.deserializer",
        f"{producer}:3 producer.type",
        "--offset.commit.interval.ms",
        "--new.consumer",
    ]


def test_refused_records_go_to_the_quarantine_instead_of_being_dropped(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first lines say so."""
    flags = ("--include", "a", "--blacklist", "b,c", "--abort.on.send.failure", "false")
    printed = converted(files, *flags, folder=tmp_path, capsys=capsys)

    assert printed.flow.quarantine == "eos-mirror.source.target.quarantine"
    assert [one.pattern for one in printed.flow.topics_exclude] == ["b|c"]
    assert "MirrorMaker 1 dropped it" in printed.text


def test_a_handler_is_taken_over_if_it_is_a_python_class(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Java class makes the conversion fail: without it, other records would be mirrored."""
    handler = "tests.engine.message_handlers.Varied"
    flags = ("--include", "a", "--message.handler", handler, "--message.handler.args", "copy")
    listener = "tests.engine.test_announced_source.Heard"
    more = ("--consumer.rebalance.listener", listener, "--rebalance.listener.args", "x")
    printed = converted(files, *flags, *more, folder=tmp_path, capsys=capsys)
    assert printed.flow.transforms.handler is not None
    connector = printed.flow.connector
    assert (connector.listener, connector.listener_args) == (listener, "x")

    assert main([*files, "--include", "a", "--message.handler", "com.example.Handler"]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert "--message.handler: this is a Java class" in found.err


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ((), "--include is missing"),
        (("--include", "a["), "--include"),
        (("--include", "a", "--num.streams", "many"), "--num.streams"),
    ],
)
def test_wrong_flags_are_named(
    files: list[str], capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], why: str
) -> None:
    """One line each, exit code 2, and nothing on stdout."""
    assert main([*files, *flags]) == 2

    found = capsys.readouterr()
    assert found.out == ""
    (line,) = found.err.splitlines()
    assert why in line
