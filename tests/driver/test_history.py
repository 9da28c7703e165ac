"""What a flow mirrored before, judged by the positions that it left on the clusters."""

from datetime import timedelta

import pytest

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.metadata import GroupMetadata, encode_group
from eos_mirror.core.plan import Conflict, Route
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver import history
from eos_mirror.driver.history import mirrored_before, owners
from eos_mirror.ports import KnownTopic
from tests.driver.fakes import FLOW, ORDERS, REMOTE, FakeClusters, group_offset, start_record

EXACTLY_ONCE, AT_LEAST_ONCE = DeliveryMode.EXACTLY_ONCE, DeliveryMode.AT_LEAST_ONCE
NEW_ID, OLD_ID = "new".ljust(22, "0"), "old".ljust(22, "0")
OURS = encode_group(GroupMetadata(topic_id=NEW_ID, partitions=1))
ROUTES = [
    Route(source_topic=topic, remote_topic=f"A.{topic}", partitions=1)
    for topic in ("orders", "users")
]
CONTESTED = Conflict(
    flow=FLOW, source_topics=("orders", "orders-old"), remote_topic="sales", reason="two"
)


@pytest.fixture
def clusters() -> FakeClusters:
    """The topics of the source have the same id as in the metadata of our positions."""
    clusters = FakeClusters()
    clusters.metadata.known = {
        "orders": KnownTopic(topic_id=NEW_ID, partitions=1),
        "users": KnownTopic(topic_id=NEW_ID, partitions=1),
        "orders-old": KnownTopic(topic_id=OLD_ID, partitions=1),
    }
    return clusters


def test_a_start_record_shows_what_was_mirrored_exactly_once(clusters: FakeClusters) -> None:
    """The offset map remembers a copy that no longer exists."""
    clusters.reader.started = {REMOTE: start_record(), TopicPartition("A.gone", 0): start_record()}

    assert mirrored_before(clusters.clients, ROUTES, mode=EXACTLY_ONCE).topics == {"orders"}


def test_an_open_transaction_on_the_offset_map_hides_only_what_began_after_it(
    clusters: FakeClusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may stay open for a minute after a task died, and the rest is certain."""
    monkeypatch.setattr(history, "DECIDED_WITHIN", timedelta(0))
    clusters.reader.undecided = True
    clusters.reader.started = {REMOTE: start_record()}

    assert mirrored_before(clusters.clients, ROUTES, mode=EXACTLY_ONCE) == ({"orders"}, False)
    assert owners(clusters.clients, [CONTESTED], mode=EXACTLY_ONCE) == set()


def test_no_routes_need_no_request(clusters: FakeClusters) -> None:
    """Nothing was mirrored, even while the offset map is undecided."""
    clusters.reader.undecided = True

    assert mirrored_before(clusters.clients, [], mode=EXACTLY_ONCE) == (set(), True)


@pytest.mark.parametrize(
    ("metadata", "was_mirrored"),
    [
        (OURS, True),
        (encode_group(GroupMetadata(topic_id=OLD_ID, partitions=1)), False),
        ("", False),
        ("set by an operator", False),
    ],
    ids=["ours", "earlier topic", "no metadata", "by hand"],
)
def test_a_position_counts_at_least_once_only_if_this_flow_committed_it(
    clusters: FakeClusters, metadata: str, was_mirrored: bool
) -> None:
    """A position that was set by hand, or for a topic before it was re-created, does not count."""
    clusters.source_offsets.committed = {ORDERS: group_offset(7, metadata)}

    found = mirrored_before(clusters.clients, ROUTES, mode=AT_LEAST_ONCE)

    assert found.topics == ({"orders"} if was_mirrored else set())


def test_one_position_set_by_hand_does_not_hide_those_that_the_flow_committed(
    clusters: FakeClusters,
) -> None:
    """Otherwise a copy that was deleted would be created again, without its earlier records."""
    clusters.metadata.known = {"orders": KnownTopic(topic_id=NEW_ID, partitions=2)}
    clusters.source_offsets.committed = {
        ORDERS: group_offset(7, OURS),
        TopicPartition("orders", 1): group_offset(3, ""),
    }

    assert mirrored_before(clusters.clients, ROUTES[:1], mode=AT_LEAST_ONCE).topics == {"orders"}


def test_the_owner_of_a_contested_copy_is_the_topic_that_began_it(clusters: FakeClusters) -> None:
    """Exactly once, the start record has the id of the topic; another topic's id is not enough."""
    clusters.reader.started = {TopicPartition("sales", 0): start_record(OLD_ID)}
    assert owners(clusters.clients, [CONTESTED], mode=EXACTLY_ONCE) == {"orders-old"}

    clusters.reader.started = {REMOTE: start_record(OLD_ID)}
    assert owners(clusters.clients, [CONTESTED], mode=EXACTLY_ONCE) == set()


def test_a_copy_with_two_possible_owners_has_none(clusters: FakeClusters) -> None:
    """Both topics have a position of this flow, so the clusters do not show which one it was."""
    old = encode_group(GroupMetadata(topic_id=OLD_ID, partitions=1))
    offsets = {ORDERS: group_offset(7, OURS), TopicPartition("orders-old", 0): group_offset(3, old)}
    clusters.source_offsets.committed = dict(offsets)
    assert owners(clusters.clients, [CONTESTED], mode=AT_LEAST_ONCE) == set()

    del clusters.source_offsets.committed[ORDERS]
    assert owners(clusters.clients, [CONTESTED], mode=AT_LEAST_ONCE) == {"orders-old"}
