"""Detects source partitions that were replaced, lost records, or are no longer authorized."""

from collections.abc import Iterable, Mapping

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.errors import PartitionStopped, RestartTask, RightMissing, SourceDataLost
from eos_mirror.ports import KnownTopic, SourceMetadata
from eos_mirror.replication.adapters import Identities
from eos_mirror.replication.partition import OwnedPartition


def went_back(flow: Flow, owned: OwnedPartition, run: RecordRun) -> SourceDataLost | None:
    """Return a fault if the leader epoch went back: another log has the same name."""
    before, after = owned.position.leader_epoch, run.leader_epoch
    if before is None or after is None or after >= before:
        return None
    return SourceDataLost(
        f"{flow} {owned.source} next_offset={owned.position.next_offset}: leader epoch went back "
        f"from {before} to {after}: the source topic was created again, or lost acknowledged "
        f"records"
    )


def explain(
    flow: Flow, owned: OwnedPartition, fault: PartitionStopped, *, metadata: SourceMetadata
) -> PartitionStopped:
    """Add to the fault of an unreadable partition where its log starts now."""
    if not isinstance(fault, SourceDataLost):
        return fault
    return SourceDataLost(
        f"{flow} {owned.source} next_offset={owned.position.next_offset}: the source log starts "
        f"at {metadata.log_start(owned.source)}. {fault}"
    )


def check_identities(flow: Flow, held: Iterable[OwnedPartition], identities: Identities) -> None:
    """
    Check that what was read and not committed is of the topics that are mirrored.

    Call it between the last poll and the commit: earlier it proves nothing. The client continues
    in the new topic without an error. Topic ids are never reused: a topic that has the old id now
    had it when its records were read. A successor stops the partitions.

    Raises:
        RestartTask: Records that were read may belong to a topic that was created again.
    """
    read = [one for one in held if one.needs_commit]
    topics = identities.topics(sorted({one.source.topic for one in read}))
    for one in read:
        topic = topics.get(one.source.topic)
        if topic is not None and not topic.topic_id:
            raise RestartTask(
                f"{flow} {one.source} next_offset={one.committed}: DESCRIBE on {one.source.topic} "
                f"({flow.source}) is not granted any more"
            )
        if topic is not None and topic.topic_id != one.topic_id:
            raise RestartTask(
                f"{flow} {one.source} next_offset={one.committed}: the source topic was created "
                f"again; nothing that was read since is committed"
            )


def check_topics(
    flow: Flow, owned: Iterable[OwnedPartition], *, metadata: SourceMetadata
) -> tuple[dict[TopicPartition, PartitionStopped], dict[TopicPartition, str]]:
    """
    Ask for the source topics of these partitions.

    Returns:
        Partitions that cannot be mirrored any more, and what others wait for that have no leader.
    """
    held = list(owned)
    topics = metadata.topics(sorted({one.source.topic for one in held}))
    return _replaced(flow, held, topics), _leaderless(flow, held, topics)


def _leaderless(
    flow: Flow, owned: Iterable[OwnedPartition], topics: Mapping[str, KnownTopic]
) -> dict[TopicPartition, str]:
    return {
        one.source: f"{one.source} has no leader on {flow.source}"
        for one in owned
        if (topic := topics.get(one.source.topic)) and one.source.partition in topic.leaderless
    }


def _replaced(
    flow: Flow, owned: Iterable[OwnedPartition], topics: Mapping[str, KnownTopic]
) -> dict[TopicPartition, PartitionStopped]:
    """
    Return partitions of topics that were deleted, created again, or may not be described any more.

    Only its id shows that a topic was re-created: its offsets may seem unchanged.
    """
    faults: dict[TopicPartition, PartitionStopped] = {}
    for one in owned:
        topic = topics.get(one.source.topic)
        if topic is not None and not topic.topic_id:
            faults[one.source] = RightMissing(
                f"{flow} {one.source} next_offset={one.position.next_offset}: not authorized: "
                f"DESCRIBE on topic {one.source.topic} ({flow.source}). Grant it with "
                f"kafka-acls.sh; the partition resumes by itself."
            )
            continue
        if topic is None or topic.topic_id != one.topic_id:
            what = "deleted" if topic is None else "deleted and created again"
            faults[one.source] = SourceDataLost(
                f"{flow} {one.source} next_offset={one.position.next_offset}: the source topic "
                f"was {what}"
            )
    return faults
