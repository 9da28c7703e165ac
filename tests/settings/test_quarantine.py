"""Where records go that the target refuses, by configuration."""

import pytest

from eos_mirror.errors import ConfigError
from eos_mirror.settings.clients import task_config
from eos_mirror.settings.fingerprint import fingerprint
from eos_mirror.settings.model import FlowSettings
from tests.settings.conftest import Load

BOTH_WAYS = "B->A.enabled = true\n"


def quarantine_of(flow: FlowSettings) -> str | None:
    """Return the quarantine that the tasks of a flow get."""
    return task_config(flow, slot=0, claims_topic_id="id").mirror.quarantine


def test_nothing_is_quarantined_by_default(load: Load) -> None:
    """A refused record stops its partition."""
    assert quarantine_of(load("").flows[0]) is None


@pytest.mark.parametrize("value", ["all", "ALL"])
def test_with_tolerance_the_flow_has_its_own_topic(load: Load, value: str) -> None:
    """Connect's values are in any case; another deployment of the flow must have the same."""
    flow = load(f"errors.tolerance = {value}\n").flows[0]

    assert quarantine_of(flow) == "eos-mirror.A.B.quarantine"
    assert fingerprint(flow) != fingerprint(load("").flows[0])


def test_a_queue_has_its_name_and_replicas(load: Load) -> None:
    """The keys are those of Connect's dead letter queues."""
    flow = load(
        "A->B.errors.tolerance = all\n"
        "A->B.errors.deadletterqueue.topic.name = dead\n"
        "A->B.errors.deadletterqueue.topic.replication.factor = 1\n"
    ).flows[0]

    assert (quarantine_of(flow), flow.refusals.replication_factor) == ("dead", 1)


def test_a_queue_without_tolerance_is_not_used(load: Load) -> None:
    """The verb still finds what an earlier run moved there."""
    flow = load("errors.deadletterqueue.topic.name = dead\n").flows[0]

    assert (flow.quarantine, flow.quarantine_topic) == (None, "dead")


def test_a_flow_does_not_mirror_the_queues_of_others(load: Load) -> None:
    """Those on its source, also if they are not used any more."""
    flows = load(
        BOTH_WAYS + "A->B.errors.tolerance = all\n"
        "A->B.errors.deadletterqueue.topic.name = dead\n"
        "B->A.errors.deadletterqueue.topic.name = unused\n"
    ).flows

    found = {str(one.flow): set(one.queues) for one in flows}
    assert found == {"A->B": {"unused"}, "B->A": {"dead"}}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("errors.tolerance = some", "'none' or 'all'"),
        ("errors.deadletterqueue.topic.name = a b", "expected the name of a topic"),
        (f"errors.deadletterqueue.topic.name = {'x' * 250}", "at most 249"),
        (
            "errors.deadletterqueue.topic.name = eos-mirror.A.B.ledger.internal",
            "names that begin with eos-mirror. belong to the mirror itself",
        ),
        ("errors.deadletterqueue.topic.replication.factor = 0", "expected a whole number"),
    ],
)
def test_wrong_values_are_faults_with_their_place(load: Load, line: str, says: str) -> None:
    """The line is named."""
    with pytest.raises(ConfigError, match=r":\d+: errors\.") as caught:
        load(f"{line}\n")

    assert says in str(caught.value)
