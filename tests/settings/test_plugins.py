"""Plugin classes of the user: each error is one line with the place and the fix."""

from pathlib import Path

import pytest

from eos_mirror.core.policy import DefaultReplicationPolicy
from eos_mirror.errors import ConfigError
from eos_mirror.settings.plugins import (
    config_filter_of,
    group_filter_of,
    policy_of,
    topic_filter_of,
)
from tests.settings.conftest import Load

MODULE = """
class Short:
    def __init__(self, config):
        self.config = config

    def matches(self, name):
        return len(name) < len(self.config["target.cluster.alias"]) + 3

class Demanding:
    def __init__(self, config):
        raise RuntimeError("no list given")

class Empty:
    def __init__(self, config):
        pass

nothing = None
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create one module that can be imported, and two that cannot."""
    (tmp_path / "mine_to_test.py").write_text(MODULE)
    (tmp_path / "broken_to_test.py").write_text("import this_is_not_there\n")
    (tmp_path / "wrong_to_test.py").write_text("def (:\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_class_of_the_user_decides(load: Load) -> None:
    """A plugin class can replace each of the three filters; it gets the flow's configuration."""
    keys = ("topic.filter.class", "group.filter.class", "config.property.filter.class")
    (flow,) = load("".join(f"{key} = mine_to_test.Short\n" for key in keys)).flows
    for of in (topic_filter_of, group_filter_of, config_filter_of):
        made = of(flow)
        assert made.matches("abc")
        assert not made.matches("abcd")
    assert isinstance(policy_of(flow), DefaultReplicationPolicy)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Mine", "'Mine' is neither a class of MirrorMaker 2 nor module.Class of Python"),
        ("com.example.MyFilter", "this is a Java class; only Python classes can be loaded"),
        ("io.example.MyFilter", "this is a Java class; only Python classes can be loaded"),
        ("no_such_module.MyFilter", "there is no module no_such_module; install it, or put its"),
        ("mine_to_test.Other", "module mine_to_test has no Other"),
        ("mine_to_test.nothing", "mine_to_test.nothing is not a class"),
        ("broken_to_test.X", "there is no module this_is_not_there"),
        ("wrong_to_test.X", "cannot import wrong_to_test: SyntaxError: "),
        ("mine_to_test.Demanding", "cannot be made: RuntimeError: no list given"),
        ("mine_to_test.Empty", "mine_to_test.Empty has no "),
    ],
)
@pytest.mark.parametrize("key", ["topic.filter.class", "replication.policy.class"])
def test_a_class_that_cannot_be_is_refused(load: Load, key: str, name: str, says: str) -> None:
    """A plugin class that cannot be used is refused with the line of the configuration."""
    with pytest.raises(ConfigError) as raised:
        load(f"{key} = {name}\n")
    (line,) = str(raised.value).splitlines()
    assert line.startswith("f:5: ")
    assert says in line
