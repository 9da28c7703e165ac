"""What can go wrong on the wire. `lane.py` translates it; none of these leaves the package."""

from collections.abc import Collection
from typing import Final

from eos_mirror.core.records import TopicPartition


class WireError(Exception):
    """Base of the errors of this package."""


class Malformed(WireError):
    """
    The bytes are no answer, or no record batches: a length or an offset cannot be right.

    Drop the connection, or stop the partition if the batches are at fault.
    """


class Corrupt(Malformed):
    """A batch fails its checksum, or its records cannot be read. Stop the partition."""


class Unanswered(WireError):
    """No answer: the connection broke, or the deadline passed. The outcome is unknown."""


class Unreachable(WireError):
    """A broker cannot be reached, so nothing was sent."""


class NotAcknowledged(Unreachable):
    """
    Records of some partitions were not acknowledged in time, whatever the answers were.

    Attributes:
        partitions: Those partitions.
    """

    def __init__(self, partitions: Collection[TopicPartition]) -> None:
        self.partitions = partitions
        names = ", ".join(sorted(map(str, partitions))[:SHOWN])
        super().__init__(f"not acknowledged in time: {names}")


SHOWN: Final = 5

UNUSABLE: Final = (Malformed, Unanswered, Unreachable)
"""A broker that cannot be used now: another one may be asked, or this one later."""


class Refused(WireError):
    """
    The broker answered with an error code.

    Attributes:
        code: Kafka's number of the error.
    """

    def __init__(self, code: int, what: str, detail: str | None = None) -> None:
        super().__init__(f"{what}: {name_of(code)}{f' ({detail})' if detail else ''}")
        self.code = code


UNKNOWN_SERVER_ERROR: Final = -1
OFFSET_OUT_OF_RANGE: Final = 1
CORRUPT_MESSAGE: Final = 2
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
LEADER_NOT_AVAILABLE: Final = 5
NOT_LEADER_OR_FOLLOWER: Final = 6
REQUEST_TIMED_OUT: Final = 7
REPLICA_NOT_AVAILABLE: Final = 9
MESSAGE_TOO_LARGE: Final = 10
COORDINATOR_LOAD_IN_PROGRESS: Final = 14
COORDINATOR_NOT_AVAILABLE: Final = 15
NOT_COORDINATOR: Final = 16
RECORD_LIST_TOO_LARGE: Final = 18
NOT_ENOUGH_REPLICAS: Final = 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND: Final = 20
TOPIC_AUTHORIZATION_FAILED: Final = 29
GROUP_AUTHORIZATION_FAILED: Final = 30
CLUSTER_AUTHORIZATION_FAILED: Final = 31
INVALID_TIMESTAMP: Final = 32
UNSUPPORTED_SASL_MECHANISM: Final = 33
ILLEGAL_SASL_STATE: Final = 34
UNSUPPORTED_VERSION: Final = 35
POLICY_VIOLATION: Final = 44
OUT_OF_ORDER_SEQUENCE_NUMBER: Final = 45
INVALID_PRODUCER_EPOCH: Final = 47
INVALID_TXN_STATE: Final = 48
INVALID_PRODUCER_ID_MAPPING: Final = 49
CONCURRENT_TRANSACTIONS: Final = 51
TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
KAFKA_STORAGE_ERROR: Final = 56
SASL_AUTHENTICATION_FAILED: Final = 58
FETCH_SESSION_ID_NOT_FOUND: Final = 70
INVALID_FETCH_SESSION_EPOCH: Final = 71
FENCED_LEADER_EPOCH: Final = 74
UNKNOWN_LEADER_EPOCH: Final = 75
OFFSET_NOT_AVAILABLE: Final = 78
INVALID_RECORD: Final = 87
PRODUCER_FENCED: Final = 90
UNKNOWN_TOPIC_ID: Final = 100
INCONSISTENT_TOPIC_ID: Final = 103
FETCH_SESSION_TOPIC_ID_ERROR: Final = 106

NAMES: Final = {
    code: name for name, code in list(globals().items()) if isinstance(code, int) and name.isupper()
} | {
    # names that the rest of the project knows from the client library
    MESSAGE_TOO_LARGE: "MSG_SIZE_TOO_LARGE",
    CORRUPT_MESSAGE: "INVALID_MSG",
}


def name_of(code: int) -> str:
    """Return the name of an error code."""
    return NAMES.get(code, f"error {code}")


NOT_LEADER: Final = frozenset(
    {
        UNKNOWN_TOPIC_OR_PARTITION,
        LEADER_NOT_AVAILABLE,
        NOT_LEADER_OR_FOLLOWER,
        REPLICA_NOT_AVAILABLE,
        KAFKA_STORAGE_ERROR,
        FENCED_LEADER_EPOCH,
        UNKNOWN_LEADER_EPOCH,
        OFFSET_NOT_AVAILABLE,
    }
)
"""Another broker may lead the partition, or this one will in a moment: ask for the leader again."""

NO_COORDINATOR: Final = frozenset(
    {COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR}
)
"""Another broker may be the coordinator, or this one will in a moment. Nothing was done."""

FENCED: Final = frozenset(
    {INVALID_PRODUCER_EPOCH, PRODUCER_FENCED, INVALID_PRODUCER_ID_MAPPING, INVALID_TXN_STATE}
)
"""Another producer uses the transactional id, or the coordinator timed the transaction out."""

DENIED: Final = frozenset(
    {
        TOPIC_AUTHORIZATION_FAILED,
        GROUP_AUTHORIZATION_FAILED,
        CLUSTER_AUTHORIZATION_FAILED,
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)

REFUSED_RECORDS: Final = frozenset(
    {
        CORRUPT_MESSAGE,
        MESSAGE_TOO_LARGE,
        RECORD_LIST_TOO_LARGE,
        INVALID_TIMESTAMP,
        INVALID_RECORD,
        POLICY_VIOLATION,
    }
)
"""The broker refused a batch because of its records, and stored nothing of it."""
