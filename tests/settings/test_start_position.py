"""`start.position` may have a position for each pattern of topics."""

from eos_mirror.core.start_positions import start_of_topic
from tests.settings.conftest import Load


def test_a_start_position_may_differ_by_topic(load: Load) -> None:
    """A comma in braces is part of the pattern; the first pattern that matches counts."""
    (flow,) = load(
        "start.position = a{1,2}=last:10, logs[.].*=latest, orders=group:readers, "
        "timestamp:2025-01-31T12:00:00+02:00\n"
    ).flows

    found = {topic: start_of_topic(flow.start_position, topic) for topic in ("aa", "logs.x", "b")}
    assert found == {
        "aa": "last:10",
        "logs.x": "latest",
        "b": "timestamp:2025-01-31T10:00:00+00:00",
    }
    assert start_of_topic(flow.start_position, "orders") == "group:readers"
