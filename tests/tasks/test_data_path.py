"""Which lane a task uses."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from eos_mirror.core.flow import Flow
from eos_mirror.core.messages import MirrorClients, MirrorConfig, TaskConfig
from eos_mirror.kafka.lane import KafkaLane
from eos_mirror.tasks.mirror import _own_lane

CLIENT = {"bootstrap.servers": "127.0.0.1:1"}


def configured(**settings: str) -> TaskConfig:
    """Return a task whose target has these settings."""
    target = {**CLIENT, **settings}
    return TaskConfig(
        mirror=cast(MirrorConfig, SimpleNamespace(flow=Flow("A", "B"), assigned=False)),
        clients=MirrorClients(
            source_consumer=CLIENT,
            source_admin=CLIENT,
            target_producer=target,
            plain_producer=target,
            target_admin=target,
            claims_producer=target,
            claims_consumer=target,
        ),
        own_lane=True,
    )


class Context:
    """Remembers events."""

    slot = 0

    def __init__(self) -> None:
        self.events: list[tuple[str, Mapping[str, Any]]] = []

    def event(self, name: str, fields: Mapping[str, Any]) -> None:
        """See `ports.TaskProcess`."""
        self.events.append((name, fields))


def chosen(config: TaskConfig) -> tuple[object, list[tuple[str, Mapping[str, Any]]]]:
    """Return the own lane of a task, and its events."""
    context = Context()
    lane = _own_lane(config, cast(Any, context), cast(KafkaLane, object()))
    return lane, context.events


def test_our_own_lane_is_used_where_the_configuration_allows_it() -> None:
    """Nothing is logged then."""
    lane, events = chosen(configured())

    assert lane is not None
    assert events == []


def test_a_mechanism_that_the_lane_does_not_speak_selects_the_client_library() -> None:
    """The event names the cluster and the setting."""
    config = configured(**{"security.protocol": "SASL_SSL", "sasl.mechanisms": "GSSAPI"})

    lane, events = chosen(config)

    assert lane is None
    ((name, fields),) = events
    assert name == "data-path.client"
    assert fields["reason"].startswith("target: ")
    assert "GSSAPI" in fields["reason"]


def test_the_configuration_can_exclude_the_lane() -> None:
    """Without a note: this is what was asked for."""
    lane, events = chosen(replace(configured(), own_lane=False))

    assert (lane, events) == (None, [])
