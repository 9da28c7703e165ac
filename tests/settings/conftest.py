"""Fixtures that load a configuration file from a directory of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eos_mirror.errors import ConfigError
from eos_mirror.settings import Settings, load_settings

Load = Callable[..., Settings]
Faults = Callable[..., list[str]]

BASE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""
"""The smallest configuration; the lines that a test adds begin at line 5."""


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
