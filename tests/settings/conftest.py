"""Fixtures that load a configuration file from a directory of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from eos_mirror.errors import ConfigError
from eos_mirror.settings import (
    FlowSettings,
    Settings,
    load_settings,
    source_admin,
    source_consumer,
    target_admin,
    target_producer,
)

Load = Callable[..., Settings]
Faults = Callable[..., list[str]]

BASE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""
"""The smallest configuration; the lines that a test adds begin at line 5."""


NOWHERE = "clusters = A, B\nA->B.enabled = true\nbootstrap.servers = 127.0.0.1:1\n"
"""A cluster that does not exist; a client can be constructed without network."""


def construct(flow: FlowSettings) -> None:
    """Construct every client of the flow, as the engine does; raises if librdkafka refuses one."""
    quiet = {"log_level": "0"}
    Consumer({**source_consumer(flow, slot=0), **quiet}).close()
    Producer({**target_producer(flow), "transactional.id": "t", **quiet})
    for config in (source_admin(flow), target_admin(flow)):
        AdminClient({**config, **quiet})
        Consumer({**config, "group.id": "reader", **quiet}).close()


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Return a function that loads BASE and more lines from a file called `f`."""
    monkeypatch.chdir(tmp_path)

    def load(more: str = "", *, base: str = BASE, **options: Any) -> Settings:
        Path("f").write_text(base + more, encoding="utf-8")
        return load_settings("f", **{"environ": {}, **options})

    return load


@pytest.fixture
def faults(load: Load) -> Faults:
    """Return a function that loads the same and returns the faults of the ConfigError."""

    def faults(more: str = "", **options: Any) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load(more, **options)
        return list(caught.value.faults)

    return faults
