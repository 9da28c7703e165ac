"""Public API: real Kafka clusters for tests, the demo and benchmarks."""

from eos_mirror.testing.backend import Backend, Choice, choose_backend, cluster_pair
from eos_mirror.testing.checker import (
    Comparison,
    PartitionComparison,
    Record,
    compare_partition,
    compare_topics,
    read_topic,
)
from eos_mirror.testing.cluster import KafkaCluster, start_clusters
from eos_mirror.testing.errors import ClusterFailed, NotInstalled
from eos_mirror.testing.external import Cluster, ExternalCluster
from eos_mirror.testing.faults import Action, Api, Fault
from eos_mirror.testing.proxy import FaultProxy, fault_proxies
from eos_mirror.testing.spec import Security
from eos_mirror.testing.waiting import wait_until

__all__ = [
    "Action",
    "Api",
    "Backend",
    "Choice",
    "Cluster",
    "ClusterFailed",
    "Comparison",
    "ExternalCluster",
    "Fault",
    "FaultProxy",
    "KafkaCluster",
    "NotInstalled",
    "PartitionComparison",
    "Record",
    "Security",
    "choose_backend",
    "cluster_pair",
    "compare_partition",
    "compare_topics",
    "fault_proxies",
    "read_topic",
    "start_clusters",
    "wait_until",
]
