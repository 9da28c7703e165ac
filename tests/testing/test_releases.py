"""Which release of Kafka the brokers of tests are."""

import pytest

from eos_mirror.errors import ConfigError
from eos_mirror.testing.releases import (
    RELEASES,
    SOURCE_VARIABLE,
    VARIABLE,
    chosen_release,
    find_release,
    source_release,
)
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


def test_another_variable_chooses_the_release_of_the_source() -> None:
    """Without it, the source cluster is of the same release as the target cluster."""
    assert source_release({VARIABLE: "3.7", SOURCE_VARIABLE: "4.4"}).name == "4.4.0"
    assert chosen_release({VARIABLE: "3.7", SOURCE_VARIABLE: "4.4"}).name == "3.7.2"
    assert source_release({VARIABLE: "3.7"}).name == "3.7.2"


@pytest.mark.parametrize(
    ("name", "protocol"),
    [("3.7", 1), ("3.9", 1), ("4.0", 2), ("4.3", 2), ("4.3-tv1", 1), ("4.4", 2)],
)
def test_a_release_speaks_a_transaction_protocol(name: str, protocol: int) -> None:
    """KIP-890's is the default since 4.0, unless its clusters are formatted with the older one."""
    assert find_release(name).protocol == protocol


def test_only_releases_with_both_protocols_have_a_feature_that_chooses_one() -> None:
    """The formatter of the others would refuse it."""
    assert find_release("4.0").features_for(1) == {"transaction.version": 1}
    assert find_release("3.9").features_for(1) == {}


def test_tools_that_differ_are_tools() -> None:
    """Each name in a release's table is that of a tool."""
    assert all(release.main_classes.keys() <= TOOLS.keys() for release in RELEASES)
