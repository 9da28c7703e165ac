"""Topics that count as heartbeats because of their names are named before they are mirrored."""

from eos_mirror.core.filters import TopicFilter
from eos_mirror.core.flow import Flow
from eos_mirror.core.heartbeat_names import odd_heartbeats
from eos_mirror.core.plan import TopicMapping
from eos_mirror.core.policy import replication_policy

TOPICS = ["heartbeats", "C.heartbeats", "app.heartbeats", "vehicle-heartbeats", "orders"]
ALIASES = {"A", "B", "C"}


def odd(policy: str, *exclude: str, heartbeats_replicated: bool = True) -> list[str]:
    """Return the sentences about `TOPICS`, on A, for the flow A->B."""
    mapping = TopicMapping(
        flow=Flow("A", "B"),
        policy=replication_policy(policy, source_alias="A"),
        topic_filter=TopicFilter([".*"], exclude),
        heartbeats_replicated=heartbeats_replicated,
    )
    return list(odd_heartbeats(TOPICS, mapping, ALIASES))


def test_the_heartbeats_of_an_unknown_cluster_may_be_a_topic_of_an_application() -> None:
    """They pass `topics.exclude`, as in MirrorMaker 2; the sentence says how to keep them out."""
    (text,) = odd("DefaultReplicationPolicy", ".*heartbeats")

    assert text.startswith("app.heartbeats becomes A.app.heartbeats, whatever `topics` says")
    assert "a cluster app." in text
    assert "heartbeats.replication.enabled = false" in text
    assert odd("DefaultReplicationPolicy", ".*heartbeats", heartbeats_replicated=False) == []


def test_the_identity_policy_gives_a_prefix_to_every_name_like_this() -> None:
    """The sentence has the line that keeps the name."""
    app, vehicle = odd("IdentityReplicationPolicy")

    assert app.startswith("app.heartbeats becomes A.app.heartbeats")
    assert vehicle.startswith("vehicle-heartbeats becomes A.vehicle-heartbeats: ")
    assert vehicle.endswith("replication.policy.topics.map = vehicle-heartbeats:vehicle-heartbeats")
