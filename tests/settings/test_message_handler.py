"""The message handler of a flow, by configuration."""

import pytest

from eos_mirror.core.handlers import HandlerSpec
from eos_mirror.errors import ConfigError
from eos_mirror.settings.clients import task_config
from eos_mirror.settings.fingerprint import fingerprint
from tests.settings.conftest import Load

HANDLER = "tests.engine.message_handlers.Varied"
LINES = f"A->B.message.handler = {HANDLER}\nmessage.handler.args = copy\n"


def test_the_tasks_get_the_class_and_its_arguments(load: Load) -> None:
    """The constructor gets the arguments and the aliases."""
    flow = load(LINES).flows[0]

    assert task_config(flow, slot=0, claims_topic_id="id").mirror.handler == HandlerSpec(
        path=HANDLER,
        config=(
            ("source.cluster.alias", "A"),
            ("target.cluster.alias", "B"),
            ("message.handler.args", "copy"),
        ),
    )


def test_without_the_key_there_is_none(load: Load) -> None:
    """Arguments alone have no effect."""
    flow = load("message.handler.args = copy\n").flows[0]

    assert flow.transforms.handler is None
    assert fingerprint(flow) == fingerprint(load("").flows[0])


def test_another_handler_is_another_deployment(load: Load) -> None:
    """Tasks with different handlers must not mirror beside each other."""
    prints = {fingerprint(load(text).flows[0]) for text in ("", LINES, LINES + LINES[:-5] + "x\n")}

    assert len(prints) == 3


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("no_such_module.Class", "there is no module no_such_module"),
        ("com.example.Handler", "this is a Java class"),
        ("tests.engine.message_handlers.Missing", "has no Missing"),
        ("tests.engine.message_handlers.number_of", "cannot be made"),
        ("builtins.dict", "builtins.dict has no handle"),
    ],
)
def test_a_class_that_cannot_be_used_is_a_fault_of_its_line(
    load: Load, value: str, why: str
) -> None:
    """The place is named."""
    with pytest.raises(ConfigError, match=r":5: ") as caught:
        load(f"message.handler = {value}\n")

    assert why in str(caught.value)


def test_a_rebalance_listener_is_checked_and_passed_on(load: Load) -> None:
    """It lacks nothing, and its constructor gets the arguments and the aliases."""
    path = "tests.engine.test_announced_source.Heard"
    flow = load(f"rebalance.listener = {path}\nrebalance.listener.args = x\n").flows[0]

    spec = task_config(flow, slot=0, claims_topic_id="id").mirror.listener
    assert spec is not None
    assert (spec.path, dict(spec.config)["rebalance.listener.args"]) == (path, "x")
    with pytest.raises(ConfigError, match=r":5: .*has no on_partitions_assigned"):
        load("rebalance.listener = builtins.dict\n")
