"""Fixtures of the runtime tests."""

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.runtime.toolbox import Stage

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session", autouse=True)
def _importable_in_children() -> Iterator[None]:
    """Let children import the toy entries from the root of the repository."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        yield


@pytest.fixture
def new_stage() -> Iterator[Callable[..., Stage]]:
    """Makes stages and closes them."""
    made: list[Stage] = []

    def make(*, ttl: timedelta = timedelta(seconds=30)) -> Stage:
        made.append(Stage(ttl=ttl))
        return made[-1]

    yield make
    for stage in made:
        stage.close()


@pytest.fixture
def stage(new_stage: Callable[..., Stage]) -> Stage:
    """A stage with the usual lease."""
    return new_stage()
