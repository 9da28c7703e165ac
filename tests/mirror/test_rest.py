"""A run over HTTP: its health, its flows, and the verbs of operators."""

import urllib.request
from datetime import timedelta

import pytest

from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror
from tests.rest.client import Client

pytestmark = pytest.mark.brokers

SOON = timedelta(seconds=30)


def test_a_run_is_asked_paused_and_resumed_over_http(site: Site) -> None:
    """The states are those of the tasks, and an order is done when it is answered."""
    config = site.config(
        listeners="http://127.0.0.1:0",
        metrics_exporters="prometheus",
        metrics_listener="127.0.0.1:0",
    )
    site.produce(400)
    flow = f"/mirror/flows/{site.flow.source}-%3E{site.flow.target}"
    topic = f"{flow}/topics/{site.topic}"
    with mirror(config) as running:
        client = Client(running.wait_for("rest.listening")["address"])
        running.wait_for("ready")
        assert client.ask("/ready?strict") == (200, {"status": "ready"})
        status, answer = client.ask(flow)
        assert (status, answer["state"]) == (200, "mirroring")
        assert answer["partitions"] == {"mirroring": site.partitions}
        site.wait_caught_up()
        wait_until(
            lambda: [p["lag"] for p in client.ask(topic)[1]["partitions"]] == [0] * site.partitions,
            within=SOON,
            what="no lag",
        )

        status, answer = client.ask(f"{topic}/pause", method="PUT", body={"reason": "upgrade"})
        assert (status, answer["halted_partitions"]) == (200, site.partitions)
        paused = client.ask(topic)[1]
        assert paused["state"] == "paused"
        assert "upgrade" in paused["partitions"][0]["reason"]
        assert client.ask("/ready?strict")[0] == 200, "a pause is no fault"
        with urllib.request.urlopen(f"{client.address}/metrics", timeout=10) as page:  # noqa: S310
            assert 'state="paused"' in page.read().decode()

        body = {"bytes_per_second": 5_000_000, "reason": "night"}
        assert client.ask(f"{topic}/throttle", method="PUT", body=body)[0] == 200
        (limit,) = client.ask(flow)[1]["limits"]
        assert (limit["topic"], limit["bytes_per_second"]) == (site.topic, 5_000_000)
        assert limit["reason"] == "night"
        assert client.ask(f"{topic}/throttle", method="PUT")[0] == 200
        assert client.ask(flow)[1]["limits"] == []

        assert client.ask(f"{flow}/resume", method="PUT")[0] == 200
        assert client.ask(flow)[1]["state"] == "mirroring"
        assert running.stop() == 0, running.errors
    assert site.compare().exact
