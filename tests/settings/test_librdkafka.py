"""The table of librdkafka's settings is what the installed library accepts."""

import re
from collections.abc import Mapping

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from eos_mirror.settings.java_names import DROPPED, RENAMED
from eos_mirror.settings.librdkafka import SETTINGS, Role

FAR_AWAY = "9999999999"
BY_THE_BINDING = {"delivery.report.only.error"}
"""confluent-kafka takes this value itself, and only as a bool."""

NUMBERS = sorted(name for name, one in SETTINGS.items() if one.low is not None)
CHOICES = sorted({name for name, one in SETTINGS.items() if one.choices} - BY_THE_BINDING)
TEXTS = sorted(SETTINGS.keys() - {*NUMBERS, *CHOICES} - BY_THE_BINDING)


def fault_of(name: str, value: str) -> str:
    """Return why a client with this setting cannot be made; empty if it can."""
    config: Mapping[str, str] = {"log_level": "0", name: value}
    try:
        if SETTINGS[name].role is Role.CONSUMER:
            Consumer({"group.id": "g", **config})
        else:
            Producer(dict(config))
    except KafkaException as exc:
        return str(exc.args[0].str())
    except ValueError as exc:  # of the binding
        return str(exc)
    return ""


@pytest.mark.parametrize("name", NUMBERS)
def test_the_range_of_a_number_is_the_librarys(name: str) -> None:
    """A value outside is brought into the range; a wrong range would refuse or loop."""
    setting = SETTINGS[name]

    fault = fault_of(name, FAR_AWAY) or fault_of(name, f"-{FAR_AWAY}")

    allowed = re.search(r"outside allowed range (-?\d+)\.\.(-?\d+)", fault)
    assert allowed is not None, fault
    assert (setting.low, setting.high) == (int(allowed[1]), int(allowed[2]))


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_that_the_table_lacks_is_refused_by_the_library(name: str) -> None:
    """Every listed value is known to the library, whatever else it needs; no other value is."""
    unknown = re.compile(r"Invalid value( .*)? for configuration property|Expected bool value")

    assert unknown.search(fault_of(name, "no-such-value"))
    for choice in SETTINGS[name].choices:
        assert not unknown.search(fault_of(name, choice)), choice


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_known_to_the_library(name: str) -> None:
    """It may be refused for its value, but not for its name."""
    assert "No such configuration property" not in fault_of(name, "x")


def test_what_java_names_become_is_in_the_table() -> None:
    """And nothing is both dropped and known."""
    assert {renamed for renamed, _ in RENAMED.values()} <= SETTINGS.keys()
    assert not DROPPED & (SETTINGS.keys() | RENAMED.keys())
