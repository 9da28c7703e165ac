"""The report of a proof as lines of text, and as JSON."""

from eos_mirror.audit.copy_counts import CopyCounts
from eos_mirror.audit.proof import PartitionProof
from eos_mirror.audit.ranges import Range
from eos_mirror.audit.report import Report, TopicReport
from eos_mirror.core.records import TopicPartition


def proof(number: int, copies: CopyCounts) -> PartitionProof:
    """Return the proof of a partition of which ten records match."""
    where = Range(
        source=TopicPartition("orders", number), start=0, end=20,
        target=TopicPartition("A.orders", number), target_start=0, target_end=10,
    )  # fmt: skip
    return PartitionProof(compared=where, matched=10, differences=[], unproven=[], copies=copies)


def topic(source: str, *partitions: PartitionProof) -> TopicReport:
    """Return the report of a topic."""
    return TopicReport(source=source, target=f"A.{source}", partitions=partitions, incomparable={})


def test_a_topic_of_which_nothing_could_be_compared_is_not_called_equal() -> None:
    """An empty topic is equal to its copy."""
    gone = TopicReport(
        source="orders",
        target="A.orders",
        partitions=[],
        incomparable={"orders-0": "orders is gone from A"},
    )

    assert list(Report(flow="A->B", topics=[gone, topic("audit")]).lines()) == [
        "orders -> A.orders: 0 records match, nothing compared",
        "  not compared: orders-0: orders is gone from A",
        "audit -> A.audit: 0 records match, equal",
        "A->B: 0 records match, no difference, but 1 partition not fully compared",
    ]


def test_what_is_filtered_or_expanded_is_counted_beside_what_matches() -> None:
    """The text has it by topic and in total, where it is not zero; JSON by partition, too."""
    orders = topic(
        "orders",
        proof(0, CopyCounts(filtered=3)),
        proof(1, CopyCounts(filtered=4, expanded=2)),
    )
    report = Report(flow="A->B", topics=[topic("audit", proof(0, CopyCounts())), orders])

    assert list(report.lines()) == [
        "audit -> A.audit: 10 records match, equal",
        "orders -> A.orders: 20 records match, 7 filtered, 2 expanded, equal",
        "A->B: 30 records match, 7 filtered, 2 expanded, no difference",
    ]
    document = report.document()
    counted = [document, *document["topics"], *document["topics"][1]["partitions"]]
    assert [(one["filtered"], one["expanded"]) for one in counted] == [
        (7, 2), (0, 0), (7, 2), (3, 0), (4, 2),
    ]  # fmt: skip
