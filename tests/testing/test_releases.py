"""Which release of Kafka the brokers of tests are."""

import pytest

from eos_mirror.errors import ConfigError
from eos_mirror.testing.releases import RELEASES, VARIABLE, chosen_release
from eos_mirror.testing.tools import TOOLS


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, "4.3.1"),
        ({VARIABLE: ""}, "4.3.1"),
        ({VARIABLE: "3.7"}, "3.7.2"),
        ({VARIABLE: "3.7.2"}, "3.7.2"),
        ({VARIABLE: "4.3-tv1"}, "4.3.1-tv1"),
    ],
)
def test_a_variable_chooses_the_release(environ: dict[str, str], name: str) -> None:
    """Two numbers suffice, and without the variable it is the default."""
    assert chosen_release(environ).name == name


@pytest.mark.parametrize("name", ["3.6", "3.7.1", "3", "4", "4.4-tv1"])
def test_another_release_is_refused_with_a_list(name: str) -> None:
    """Only releases with a lock can be fetched."""
    with pytest.raises(ConfigError, match=rf"Kafka {name}: use 3\.7\.2, .*4\.4\.0"):
        chosen_release({VARIABLE: name})


def test_tools_that_differ_are_tools() -> None:
    """Each name in a release's table is that of a tool."""
    assert all(release.main_classes.keys() <= TOOLS.keys() for release in RELEASES)
