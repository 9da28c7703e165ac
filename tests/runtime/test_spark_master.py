"""How many tasks a standalone Spark master has room for, from its page."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from eos_mirror.errors import ConfigError
from eos_mirror.runtime.spark_master import MasterPage, Worker, check_master, free_slots, megabytes

SOON = timedelta(seconds=5)


def page(*workers: tuple[int, int]) -> MasterPage:
    """Return a page with workers, as (free cores, free memory in MB)."""
    return MasterPage(
        workers=[Worker(free_cores=cores, free_memory_mb=memory) for cores, memory in workers],
        cores=sum(cores for cores, _ in workers),
        ours=0,
    )


@pytest.mark.parametrize(
    ("workers", "settings", "slots"),
    [
        ([(2, 4096), (3, 4096)], {}, 5),
        ([(2, 4096)], {"spark.task.cpus": "0.5"}, 4),
        ([(2, 512)], {}, 0),
        ([(2, 512)], {"spark.executor.memory": "512m"}, 2),
        ([(4, 8192)], {"spark.executor.cores": "3"}, 3),
        ([(4, 1024)], {"spark.executor.cores": "1"}, 1),
        ([(4, 8192), (4, 8192)], {"spark.cores.max": "5"}, 5),
        ([(4, 8192)], {"spark.executor.cores": "2", "spark.cores.max": "3"}, 2),
        ([], {}, 0),
    ],
    ids=[
        "an executor on each worker",
        "half a core for a task",
        "no memory for an executor",
        "small executors",
        "what is left of a worker is too small",
        "memory for one executor",
        "no more than cores.max",
        "whole executors up to cores.max",
        "no workers",
    ],
)
def test_slots_are_counted_as_spark_places_executors(
    workers: list[tuple[int, int]], settings: Mapping[str, str], slots: int
) -> None:
    """An executor needs its cores and its memory on one worker."""
    assert free_slots(page(*workers), settings) == slots


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("512m", 512), ("1g", 1024), ("2GB", 2048), ("1024", 1024), ("0.5t", 524288)],
)
def test_sizes_are_read_in_sparks_notation(text: str, wanted: int) -> None:
    """A number without a unit has megabytes."""
    assert megabytes(text) == wanted


@contextmanager
def master(**changes: Any) -> Iterator[dict[str, str]]:
    """Serve the page of a master with a busy worker of four cores; yield settings of a run."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({**content, **changes}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    port = server.server_port  # also of the "master": it only has to accept a connection
    worker = {"state": "ALIVE", "cores": 4, "coresfree": 1, "memoryfree": 8192}
    dead = {"state": "DEAD", "cores": 9, "coresfree": 9, "memoryfree": 8192}
    content = {
        "url": f"spark://master.example:{port}",
        "status": "ALIVE",
        "workers": [worker, dead],
        "activeapps": [{"name": "other", "cores": 3}],
    }
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {"spark.master": f"spark://127.0.0.1:{port}", "spark.master.ui.port": str(port)}
    finally:
        server.shutdown()
        server.server_close()


def warning(settings: Mapping[str, str], *, tasks_count: int) -> str:
    """Check the master."""
    return check_master(settings, tasks_count=tasks_count, app="ours", within=SOON)


def test_a_master_with_too_few_free_cores_is_refused_with_the_numbers() -> None:
    """Only living workers count."""
    with master() as settings:
        assert warning(settings, tasks_count=1) == ""
        with pytest.raises(ConfigError, match="has 1 of 4 cores free, so it has slots for 1 of 2"):
            warning(settings, tasks_count=2)


def test_cores_of_our_own_application_lead_to_a_warning() -> None:
    """The run of this configuration may hold them, and a restart frees them."""
    with master(activeapps=[{"name": "ours", "cores": 3}]) as settings:
        assert "applications named ours hold 3 cores" in warning(settings, tasks_count=4)
        with pytest.raises(ConfigError, match="slots for 1 of 5"):
            warning(settings, tasks_count=5)


@pytest.mark.parametrize(
    "changes",
    [{"status": "STANDBY"}, {"url": "spark://other:1"}, {"workers": "none"}],
    ids=["a standby", "another master", "another program"],
)
def test_a_page_that_does_not_tell_leads_to_a_warning(changes: Mapping[str, Any]) -> None:
    """The page may be on another port, or need a login: that stops no run."""
    with master(**changes) as settings:
        said = warning(settings, tasks_count=9)
    assert "its free cores are unknown" in said
    assert "Set spark.master.ui.port" in said


@pytest.mark.parametrize("address", ["spark://", "spark://host", "spark://host:port"])
def test_an_address_without_a_port_is_refused(address: str) -> None:
    """The line shows the form."""
    with pytest.raises(ConfigError, match="must be spark://HOST:PORT"):
        warning({"spark.master": address}, tasks_count=1)


@pytest.mark.parametrize("master", ["local[2]", "yarn", "k8s://https://host:443"])
def test_no_other_master_is_asked(master: str) -> None:
    """They have no such page."""
    assert warning({"spark.master": master}, tasks_count=9) == ""
