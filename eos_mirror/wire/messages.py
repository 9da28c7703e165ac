"""
The requests of the lane, with the versions that it speaks.

Kafka 3.7 to 4.4 know every version here, except where two are given: the older one is for brokers
without the second transaction protocol (KIP-890), or without topic ids in produce requests.
Source: clients/src/main/resources/common/message of Apache Kafka.
"""

from dataclasses import dataclass
from typing import Final

from eos_mirror.wire.codec import Shape, shape

NO_REPLICA: Final = -1
"""The sender is a client, not a broker that follows."""

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


@dataclass(frozen=True, slots=True, eq=False)
class Api:
    """
    One version of one request.

    Attributes:
        key, version: Kafka's numbers.
        request, answer: Their bodies.
        flexible_header: The header of the answer has tagged fields.
    """

    name: str
    key: int
    version: int
    request: Shape
    answer: Shape
    flexible_header: bool = True


def _api(
    name: str, key: int, version: int, request: str, answer: str, *, flexible: bool = True
) -> Api:
    return Api(
        name,
        key,
        version,
        shape(request, flexible=flexible),
        shape(answer, flexible=flexible),
        flexible_header=flexible and name != "ApiVersions",
    )


API_VERSIONS: Final = _api(
    "ApiVersions",
    18,
    3,
    "client_software_name:string client_software_version:string",
    "error_code:int16 api_keys:[key:int16 min_version:int16 max_version:int16] "
    "throttle_time_ms:int32 supported_features@0:[name:string min:int16 max:int16] "
    "finalized_features_epoch@1:int64 finalized_features@2:[name:string max:int16 min:int16]",
)

SASL_HANDSHAKE: Final = _api(
    "SaslHandshake",
    17,
    1,
    "mechanism:string",
    "error_code:int16 mechanisms:[:string]",
    flexible=False,
)

SASL_AUTHENTICATE: Final = _api(
    "SaslAuthenticate",
    36,
    2,
    "auth_bytes:bytes",
    "error_code:int16 error_message:string auth_bytes:bytes session_lifetime_ms:int64",
)

METADATA: Final = _api(
    "Metadata",
    3,
    12,
    "topics:[topic_id:uuid name:string] allow_auto_topic_creation:bool "
    "include_topic_authorized_operations:bool",
    "throttle_time_ms:int32 brokers:[node_id:int32 host:string port:int32 rack:string] "
    "cluster_id:string controller_id:int32 topics:[error_code:int16 name:string topic_id:uuid "
    "is_internal:bool partitions:[error_code:int16 partition_index:int32 leader_id:int32 "
    "leader_epoch:int32 replica_nodes:[:int32] isr_nodes:[:int32] offline_replicas:[:int32]] "
    "topic_authorized_operations:int32]",
)

FIND_COORDINATOR: Final = _api(
    "FindCoordinator",
    10,
    4,
    "key_type:int8 coordinator_keys:[:string]",
    "throttle_time_ms:int32 coordinators:[key:string node_id:int32 host:string port:int32 "
    "error_code:int16 error_message:string]",
)

INIT_PRODUCER_ID: Final = _api(
    "InitProducerId",
    22,
    4,
    "transactional_id:string transaction_timeout_ms:int32 producer_id:int64 producer_epoch:int16",
    "throttle_time_ms:int32 error_code:int16 producer_id:int64 producer_epoch:int16",
)

ADD_PARTITIONS_TO_TXN: Final = _api(
    "AddPartitionsToTxn",
    24,
    3,
    "transactional_id:string producer_id:int64 producer_epoch:int16 "
    "topics:[name:string partitions:[:int32]]",
    "throttle_time_ms:int32 results:[name:string results:[partition_index:int32 error_code:int16]]",
)

ADD_OFFSETS_TO_TXN: Final = _api(
    "AddOffsetsToTxn",
    25,
    3,
    "transactional_id:string producer_id:int64 producer_epoch:int16 group_id:string",
    "throttle_time_ms:int32 error_code:int16",
)

_TXN_OFFSET_COMMIT: Final = (
    "transactional_id:string group_id:string producer_id:int64 producer_epoch:int16 "
    "generation_id:int32 member_id:string group_instance_id:string "
    "topics:[name:string partitions:[partition_index:int32 committed_offset:int64 "
    "committed_leader_epoch:int32 committed_metadata:string]]",
    "throttle_time_ms:int32 topics:[name:string "
    "partitions:[partition_index:int32 error_code:int16]]",
)
TXN_OFFSET_COMMIT_3: Final = _api("TxnOffsetCommit", 28, 3, *_TXN_OFFSET_COMMIT)
TXN_OFFSET_COMMIT_5: Final = _api("TxnOffsetCommit", 28, 5, *_TXN_OFFSET_COMMIT)

_END_TXN: Final = "transactional_id:string producer_id:int64 producer_epoch:int16 committed:bool"
END_TXN_3: Final = _api("EndTxn", 26, 3, _END_TXN, "throttle_time_ms:int32 error_code:int16")
END_TXN_5: Final = _api(
    "EndTxn",
    26,
    5,
    _END_TXN,
    "throttle_time_ms:int32 error_code:int16 producer_id:int64 producer_epoch:int16",
)

FETCH: Final = _api(
    "Fetch",
    1,
    13,
    "replica_id:int32 max_wait_ms:int32 min_bytes:int32 max_bytes:int32 isolation_level:int8 "
    "session_id:int32 session_epoch:int32 topics:[topic_id:uuid partitions:[partition:int32 "
    "current_leader_epoch:int32 fetch_offset:int64 last_fetched_epoch:int32 "
    "log_start_offset:int64 partition_max_bytes:int32]] "
    "forgotten_topics_data:[topic_id:uuid partitions:[:int32]] rack_id:string",
    "throttle_time_ms:int32 error_code:int16 session_id:int32 responses:[topic_id:uuid "
    "partitions:[partition_index:int32 error_code:int16 high_watermark:int64 "
    "last_stable_offset:int64 log_start_offset:int64 "
    "aborted_transactions:[producer_id:int64 first_offset:int64] "
    "preferred_read_replica:int32 records:bytes "
    "diverging_epoch@0:(epoch:int32 end_offset:int64)]]",
)

LIST_OFFSETS: Final = _api(
    "ListOffsets",
    2,
    7,
    "replica_id:int32 isolation_level:int8 topics:[name:string partitions:[partition_index:int32 "
    "current_leader_epoch:int32 timestamp:int64]]",
    "throttle_time_ms:int32 topics:[name:string partitions:[partition_index:int32 "
    "error_code:int16 timestamp:int64 offset:int64 leader_epoch:int32]]",
)

DESCRIBE_CONFIGS: Final = _api(
    "DescribeConfigs",
    32,
    4,
    "resources:[resource_type:int8 resource_name:string configuration_keys:[:string]] "
    "include_synonyms:bool include_documentation:bool",
    "throttle_time_ms:int32 results:[error_code:int16 error_message:string resource_type:int8 "
    "resource_name:string configs:[name:string value:string read_only:bool config_source:int8 "
    "is_sensitive:bool synonyms:[name:string value:string source:int8] config_type:int8 "
    "documentation:string]]",
)

_PRODUCED: Final = (
    "partitions:[index:int32 error_code:int16 base_offset:int64 log_append_time_ms:int64 "
    "log_start_offset:int64 record_errors:[batch_index:int32 batch_index_error_message:string] "
    "error_message:string]] throttle_time_ms:int32"
)
_PRODUCE: Final = "transactional_id:string acks:int16 timeout_ms:int32"
"""Topics follow; `produce.py` writes them, because batches are sent from where they lie."""

PRODUCE_9: Final = _api("Produce", 0, 9, _PRODUCE, f"responses:[name:string {_PRODUCED}")
PRODUCE_12: Final = _api("Produce", 0, 12, _PRODUCE, f"responses:[name:string {_PRODUCED}")
PRODUCE_13: Final = _api("Produce", 0, 13, _PRODUCE, f"responses:[topic_id:uuid {_PRODUCED}")
