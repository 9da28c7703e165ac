"""Single signs of a fault become one warning; many of them do not fill the log."""

from collections.abc import Mapping
from typing import Any

from eos_mirror.driver.signs_of_faults import AT_MOST_EVERY, SignsOfFaults

FLOW = {"flow": "A->B"}


class Heard:
    """Collects events, at a time that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        self.signs = SignsOfFaults(
            lambda name, fields: self.events.append((name, fields)), clock=lambda: self.now
        )

    def warnings(self, name: str) -> list[Mapping[str, Any]]:
        """Return the fields of these events."""
        return [fields for heard, fields in self.events if heard == name]


def test_the_first_sign_is_a_warning_with_its_fields() -> None:
    """The event itself is passed on, too."""
    heard = Heard()
    heard.signs("commit.suspicious", {**FLOW, "task": 0, "reason": "slow"})

    assert heard.events == [
        ("commit.suspicious", {**FLOW, "task": 0, "reason": "slow"}),
        ("commits.doubtful", {**FLOW, "task": 0, "reason": "slow", "times": 1}),
    ]


def test_many_signs_are_counted() -> None:
    """A slow target has one in each second; the next warning says how many there were."""
    heard = Heard()
    for second in range(int(AT_MOST_EVERY.total_seconds()) + 1):
        heard.now = float(second)
        heard.signs("commit.suspicious", FLOW)

    found = heard.warnings("commits.doubtful")
    assert [fields["times"] for fields in found] == [1, AT_MOST_EVERY.total_seconds()]


def test_each_kind_has_its_own_count() -> None:
    """A foreign record is not hidden by a slow commit before it."""
    heard = Heard()
    heard.signs("commit.suspicious", FLOW)
    heard.signs("partition.gap", {**FLOW, "partition": "A.orders-0", "offsets": 1})
    heard.signs("partition.gap", {**FLOW, "partition": "A.orders-0", "offsets": 2})

    assert heard.warnings("offsets.unexpected") == [
        {**FLOW, "partition": "A.orders-0", "offsets": 1, "times": 1}
    ]


def test_other_events_are_passed_on_alone() -> None:
    """Nothing is added."""
    heard = Heard()
    heard.signs("ready", FLOW)
    assert heard.events == [("ready", FLOW)]
