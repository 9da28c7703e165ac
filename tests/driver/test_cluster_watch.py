"""Events of a cluster that stops answering, and answers again."""

from itertools import count

import pytest

from eos_mirror.driver import cluster_watch
from eos_mirror.driver.cluster_watch import ClusterWatch
from eos_mirror.kafka.cluster_probe import Silence
from tests.driver.fake_probe import FakeProbe
from tests.driver.fakes import Events

SERVERS = "a:9092,b:9092"


def test_each_outage_is_one_event_and_its_end_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is asked; the first reason counts, and a silence may have none."""
    down, other, mute = Silence("Connection refused"), Silence("Disconnected"), Silence("")
    answers = {SERVERS: [None, down, other, down, None, None, mute, None]}
    monkeypatch.setattr(FakeProbe, "answers", answers)
    monkeypatch.setattr(cluster_watch, "ClusterProbe", FakeProbe)
    events = Events()
    clock = count(100.0, 10.0)
    outages: dict[str, str] = {}
    watch = ClusterWatch(
        "A",
        {"bootstrap.servers": SERVERS},
        outages=outages,
        on_event=events,
        now=lambda: next(clock),
    )
    seen = []

    for _ in range(8):
        watch.look()
        seen.append(outages.get("A", ""))

    refused = "Connection refused"
    assert seen == ["", refused, refused, refused, "", "", "no answer", ""]

    where = {"cluster": "A", "servers": SERVERS}
    assert list(events) == [
        ("cluster.unreachable", {**where, "reason": "Connection refused"}),
        ("cluster.recovered", {"cluster": "A", "after_s": 40}),
        ("cluster.unreachable", {**where, "reason": "no answer"}),
        ("cluster.recovered", {"cluster": "A", "after_s": 20}),
    ]
