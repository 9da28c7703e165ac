"""A message handler of the user's own, on real brokers: copies, translations and `verify`."""

import os
import signal
from pathlib import Path

import pytest

from tests.mirror.command_line import quarantine, verb
from tests.mirror.conftest import Site
from tests.mirror.proofs import ON_BOTH, verify
from tests.mirror.refused_records import TOLERANT, offer, quarantined, values
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

HANDLER = '''
class Words:
    """Makes a copy of each word; fails for `bad`, and marks the copies."""

    def __init__(self, config):
        self.mark = config["message.handler.args"]

    def handle(self, message):
        for word in (message.value or b"").split():
            if word == b"bad":
                raise ValueError("a bad word")
            header = (self.mark, message.topic.encode())
            yield message._replace(value=word, headers=[*message.headers, header])
'''
LINES = [b"one two three", b"", b"four", b"five six"]
WORDS = [word for line in LINES for word in line.split()]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment in which the module of the handler can be imported."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "words.py").write_text(HANDLER)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    return {**os.environ, "PYTHONPATH": path}


@pytest.fixture
def topic(site: Site) -> str:
    """A topic of one partition."""
    name = f"{site.topic}-lines"
    site.source.create_topic(name, 1)
    return name


def handling(**more: str) -> dict[str, str]:
    """Return the lines of a configuration with the handler."""
    return {"message_handler": "words.Words", "message_handler_args": "from", **more}


@ON_BOTH
def test_each_record_has_the_copies_that_the_handler_makes(
    site: Site, topic: str, env: dict[str, str], place: dict[str, str]
) -> None:
    """Each offset is translated to its first copy; `verify` applies the handler, and counts."""
    offer(site, topic, [(b"k", line) for line in LINES])
    config = site.config(**handling(), **place)
    with mirror(config, "--once", env=env) as running:
        assert running.wait() == 0, running.errors

    assert values(site, topic) == WORDS
    answers = [
        verb("translate", config, site, topic, "0", str(offset), env=env).strip()
        for offset in range(len(LINES) + 1)
    ]
    assert answers == ["0", "3", "3", "4", "6"]
    back = [
        verb("translate", config, site, topic, "0", str(copy), "--reverse", env=env).strip()
        for copy in range(len(WORDS))
    ]
    assert back == ["0", "0", "0", "2", "3", "3"]
    code, topics, text = verify(site, place=handling(**place), env=env)
    assert code == 0, text
    (one,) = [one for one in topics if one["source"] == topic]
    assert (one["matched"], one["filtered"], one["expanded"]) == (len(WORDS), 1, 2)
    assert f"{len(WORDS)} records match, 1 filtered, 2 expanded, equal" in text


def test_a_killed_task_repeats_no_copy(site: Site, topic: str, env: dict[str, str]) -> None:
    """Copies of one record are committed together."""
    lines = [b" ".join(b"%d.%d" % (n, i) for i in range(n % 5)) for n in range(2_000)]
    with mirror(site.config(**handling()), env=env) as running:
        running.wait_for("ready")
        for killed, start in enumerate(range(0, len(lines), 500)):
            offer(site, topic, [(b"k", line) for line in lines[start : start + 500]])
            process = running.wait_for("task.started", count=killed + 1)["pid"]
            os.kill(process, signal.SIGKILL)
        site.view.wait_caught_up(topic, f"{site.flow.source}.{topic}", partitions=1)
        assert running.stop() == 0, running.errors

    assert values(site, topic) == [word for line in lines for word in line.split()]


def test_a_record_for_which_it_fails_stops_the_partition(
    site: Site, topic: str, env: dict[str, str]
) -> None:
    """The reason names the handler's error, and the records before it are copied."""
    offer(site, topic, [(b"k", b"one two"), (b"k", b"three bad"), (b"k", b"four")])
    with mirror(site.config(**handling()), "--once", env=env) as running:
        assert running.wait() == 1, running.errors

    (stopped,) = running.found("partition.stopped")
    assert stopped["cause"] == "RecordRefused"
    assert "next_offset=1: the message handler refuses this record" in stopped["reason"]
    assert "ValueError: a bad word" in stopped["reason"]
    assert values(site, topic) == [b"one", b"two"]


def test_with_a_quarantine_the_others_are_copied(
    site: Site, topic: str, env: dict[str, str]
) -> None:
    """The record is there as it is on the source."""
    offer(site, topic, [(b"k", b"one two"), (b"k", b"three bad"), (b"k", b"four")])
    with mirror(site.config(**handling(**TOLERANT)), "--once", env=env) as running:
        assert running.wait() == 0, running.errors

    assert values(site, topic) == [b"one", b"two", b"four"]
    (held,) = quarantined(site)
    assert (held.offset, held.value, held.code) == (1, b"three bad", "MESSAGE_HANDLER")
    code, _, text = verify(site, place=handling(), env=env)
    assert code == 0, text
    assert "explained: 1 left out, and in the ledger" in text
    code, text = quarantine(site, "replay", "--yes")
    assert code == 1, text
    assert "not replayed: its message handler failed" in text


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        ("no_such.Class", "there is no module no_such"),
        ("words.Missing", "module words has no Missing"),
        ("builtins.dict", "builtins.dict has no handle"),
    ],
)
def test_a_class_that_cannot_be_used_is_refused_at_the_start(
    site: Site, env: dict[str, str], handler: str, why: str
) -> None:
    """One line with the place."""
    with mirror(site.config(message_handler=handler), "--check", env=env) as running:
        assert running.wait() == 2
    (line,) = [one for one in running.errors if one.startswith("eos-mirror: ")]
    assert why in line
    assert ".properties:" in line
