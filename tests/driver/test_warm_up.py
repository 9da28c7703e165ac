"""Coordinators are looked up early: once for each cluster, and without waiting for an answer."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eos_mirror.driver import warm_up as module
from eos_mirror.driver.warm_up import warm_up
from tests.driver.fakes import settings_of, write_config

ROOT = Path(__file__).parents[2]
THREE_CLUSTERS = {
    "clusters": "A, B, C",
    "A.bootstrap.servers": "a:9",
    "B.bootstrap.servers": "b:9",
    "C.bootstrap.servers": "c:9",
    "C->B.enabled": "true",
    "B->C.enabled": "true",
}
WITHOUT_BROKERS = """
import os, sys
from eos_mirror.driver.warm_up import warm_up
from eos_mirror.settings.load import load_settings
settings = load_settings(sys.argv[1])
warm_up(settings)
print("returned", flush=True)
os._exit(0)
"""
"""In a process of its own: the clients wait for their clusters as long as the process lives."""


class Lookups:
    """Which cluster was asked for which coordinator."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.groups: list[tuple[str, str]] = []
        self.ids: list[tuple[str, str]] = []
        patch.setattr(module, "find_coordinator", self.find_coordinator)
        patch.setattr(module, "find_transaction_coordinator", self.find_transaction_coordinator)

    def find_coordinator(self, config: Mapping[str, Any], group: str) -> None:
        """See `kafka/warm_up.py`."""
        self.groups.append((config["bootstrap.servers"], group))

    def find_transaction_coordinator(self, config: Mapping[str, Any], name: str) -> None:
        """See `kafka/warm_up.py`."""
        assert "transaction.timeout.ms" in config
        self.ids.append((config["bootstrap.servers"], name))


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> Lookups:
    """None yet."""
    return Lookups(monkeypatch)


def test_each_cluster_is_asked_once(lookups: Lookups, tmp_path: Path) -> None:
    """A cluster in several flows, and on both sides of a flow, is still asked once."""
    warm_up(settings_of(tmp_path, THREE_CLUSTERS))

    assert sorted(server for server, _ in lookups.groups) == ["a:9", "b:9", "c:9"]
    assert sorted(server for server, _ in lookups.ids) == ["b:9", "c:9"]
    assert all(name.endswith(".probe") for _, name in lookups.ids)


def test_a_target_without_transactions_is_not_asked_for_their_coordinator(
    lookups: Lookups, tmp_path: Path
) -> None:
    """At least once, `__transaction_state` is never needed."""
    warm_up(settings_of(tmp_path, {**THREE_CLUSTERS, "B.transaction.producer": "false"}))

    assert [server for server, _ in lookups.ids] == ["c:9"]


@pytest.mark.parametrize(
    "keys",
    [{}, {"A.security.protocol": "SSL", "A.admin.ssl.ca.location": "/missing"}],
    ids=["no broker", "no client"],
)
def test_a_cluster_that_cannot_be_asked_fails_nothing(
    tmp_path: Path, keys: Mapping[str, object]
) -> None:
    """The check reports it later."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_BROKERS, write_config(tmp_path, keys)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout == "returned\n"
