"""The report of a proof as lines of text."""

from eos_mirror.audit.report import Report, TopicReport


def test_a_topic_of_which_nothing_could_be_compared_is_not_called_equal() -> None:
    """An empty topic is equal to its copy."""
    gone = TopicReport(
        source="orders",
        target="A.orders",
        partitions=[],
        incomparable={"orders-0": "orders is gone from A"},
    )
    empty = TopicReport(source="audit", target="A.audit", partitions=[], incomparable={})

    assert list(Report(flow="A->B", topics=[gone, empty]).lines()) == [
        "orders -> A.orders: 0 records match, nothing compared",
        "  not compared: orders-0: orders is gone from A",
        "audit -> A.audit: 0 records match, equal",
        "A->B: 0 records match, no difference, but 1 partition not fully compared",
    ]
