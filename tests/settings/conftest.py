"""A configuration file in a directory of its own."""

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
"""Four lines that are enough; what a test adds begins at line 5."""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load BASE and more lines from a file called `f`."""
    monkeypatch.chdir(tmp_path)

    def load(more: str = "", *, base: str = BASE, **options: Any) -> Settings:
        Path("f").write_text(base + more, encoding="utf-8")
        return load_settings("f", **{"environ": {}, **options})

    return load


@pytest.fixture
def faults(load: Load) -> Faults:
    """The faults that loading the same reports."""

    def faults(more: str = "", **options: Any) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load(more, **options)
        return list(caught.value.faults)

    return faults
