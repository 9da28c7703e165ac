"""When two configurations count as the same."""

import pytest

from eos_mirror.settings import fingerprint
from tests.settings.conftest import Load


def test_a_fingerprint_is_stable(load: Load) -> None:
    """A new release must not change the fingerprint of an unchanged configuration."""
    assert fingerprint(load().flows[0]) == "682b4912"


@pytest.mark.parametrize(
    "line",
    [
        "topics = a",
        "topics.exclude = a",
        "replication.policy.class = IdentityReplicationPolicy",
        "replication.policy.separator = _",
        "replication.policy.topics.map = orders:sales",
        "start.position = latest",
        "tasks.max = 2",
        "heartbeats.replication.enabled = false",
    ],
)
def test_what_is_mirrored_where_counts(load: Load, line: str) -> None:
    """A key that decides which records are mirrored where changes the fingerprint."""
    assert fingerprint(load(line).flows[0]) != fingerprint(load().flows[0])


@pytest.mark.parametrize(
    "line",
    [
        "A.bootstrap.servers = other:1",
        "A.sasl.password = x",
        "transaction.boundary.bytes = 1",
        "A->B.topics = .*",
    ],
)
def test_how_it_is_done_does_not_count(load: Load, line: str) -> None:
    """Hosts, secrets, tuning and restated defaults do not change the fingerprint."""
    assert fingerprint(load(line).flows[0]) == fingerprint(load().flows[0])


def test_the_order_of_topics_does_not_count(load: Load) -> None:
    """The order of patterns does not change the fingerprint."""
    flows = [load(f"topics = {order}").flows[0] for order in ("a,b", "b,a")]

    assert fingerprint(flows[0]) == fingerprint(flows[1])
