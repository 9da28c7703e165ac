"""The records that the demo writes."""

from collections import Counter

from eos_mirror.demo.source import PARTITIONS, SHAPES, Written, acknowledged, order


def test_every_partition_gets_every_shape() -> None:
    """Every partition has records with null and empty keys and values, and with headers."""
    seen = Counter(
        (number % PARTITIONS, value is None, value == b"", key is None, key == b"", len(headers))
        for number in range(PARTITIONS * SHAPES)
        for value, key, headers in [order("x", number)]
    )

    assert len(seen) == PARTITIONS * 6


def test_orders_print_on_one_line_and_cannot_be_taken_for_null() -> None:
    """Records have no character that the proof, which reads text, uses as a separator."""
    for number in range(SHAPES):
        value, key, headers = order("x", number)
        for part in (value, key):
            assert not {b"\t", b"\n", b"<"} & {bytes([byte]) for byte in part or b""}
        assert not any(set(b",:\t\n<") & set(text or b"") for _, text in headers)


def test_headers_hold_null_empty_and_repeated_ones() -> None:
    """The headers include null, empty and repeated ones, in this order."""
    headers = order("x", 4)[2]

    assert headers == [("trace", b"1"), ("trace", b"2"), ("empty", b""), ("null", None)]


def test_only_acknowledged_records_of_the_java_producer_count() -> None:
    """Only successful sends count; other events and log lines do not."""
    report = "\n".join(
        [
            '{"timestamp":1,"name":"startup_complete"}',
            '{"name":"producer_send_success","offset":0,"partition":2,"value":"0"}',
            '{"name":"producer_send_error","topic":"orders","value":"1"}',
            '{"name":"producer_send_success","offset":0,"partition":0,"value":"2"}',
            "a line of log",
        ]
    )

    assert acknowledged(report) == Written(committed=Counter({2: 1, 0: 1}))


def test_what_several_producers_wrote_adds_up() -> None:
    """The counts of several producers are added."""
    one = Written(committed=Counter({0: 2}), aborted=1, commits=1, aborts=1)
    two = Written(committed=Counter({0: 1, 1: 5}), aborted=2, commits=3)

    assert one + two == Written(committed=Counter({0: 3, 1: 5}), aborted=3, commits=4, aborts=1)
