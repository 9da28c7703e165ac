"""Orders of operators: the newest about a topic counts, and every run reads them alike."""

from datetime import UTC, datetime

import pytest

from eos_mirror.core.desired import (
    NOTHING_ORDERED,
    RELOAD_KEY,
    Applied,
    DesiredState,
    LimitOrder,
    Order,
    Request,
    Wanted,
    decode_applied,
    decode_order,
    request_of,
    retry_key,
)
from eos_mirror.core.throttles import Limit

AT = datetime(2026, 3, 1, 9, 30, 0, 125_000, tzinfo=UTC)
TEXT = (
    '{"version":1,"state":"paused","at":"2026-03-01T09:30:00.125+00:00","by":"operator@host-7",'
    '"reason":"upgrade of B"}'
)


def order(topics: str, wanted: Wanted = Wanted.PAUSED) -> Order:
    """Return an order about these topics."""
    return Order(topics=topics, wanted=wanted, at=AT, by="operator@host-7", reason="upgrade of B")


def after(*orders: Order) -> DesiredState:
    """Return the state after these orders, the oldest first."""
    state = NOTHING_ORDERED
    for one in orders:
        state = state.after(one.key, one.encode().encode())
    return state


def test_an_order_is_the_text_that_the_documentation_shows() -> None:
    """Other programs may read and write it."""
    one = order("orders.*")
    assert (one.key, one.encode()) == ("topics:orders.*", TEXT)
    assert decode_order("topics:orders.*", TEXT.encode()) == one
    assert str(one) == "paused since 2026-03-01 09:30:00 UTC by operator@host-7: upgrade of B"


def test_of_the_orders_about_a_topic_the_newest_counts() -> None:
    """A pattern matches whole names."""
    everything_but_orders = after(order(".*"), order("orders", Wanted.RUNNING))
    assert list(everything_but_orders.not_running({"orders", "orders-2", "audit"})) == [
        "audit",
        "orders-2",
    ]
    again = everything_but_orders.after(order(".*").key, order(".*").encode().encode())
    assert list(again.not_running({"orders", "audit"})) == ["audit", "orders"]


def test_a_tombstone_takes_an_order_back() -> None:
    """What was ordered before about the same topics counts again."""
    state = after(order("orders"), order("audit"))
    assert list(state.after("topics:orders", None).not_running({"orders", "audit"})) == ["audit"]
    assert state.after("topics:other", None) is state


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("applied", '{"version":1,"through":3,"partitions":0}'),
        ("topics:orders", TEXT.replace('"version":1', '"version":2')),
        ("topics:orders", TEXT.replace("paused", "throttled")),
    ],
)
def test_what_a_later_version_wrote_changes_nothing(key: str, value: str) -> None:
    """A reader skips what it does not know."""
    assert NOTHING_ORDERED.after(key, value.encode()) is NOTHING_ORDERED


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("topics:orders", b"\xff"),
        ("topics:orders", b"[]"),
        ("topics:orders", TEXT.replace("2026", "in 2026").encode()),
        ("topics:(", TEXT.encode()),
    ],
    ids=["no text", "no object", "no time", "no pattern"],
)
def test_a_damaged_record_is_an_error(key: str, value: bytes) -> None:
    """The run reports it, and does what was ordered otherwise."""
    with pytest.raises(ValueError, match="not "):
        NOTHING_ORDERED.after(key, value)


LIMIT = (
    '{"version":1,"bytes_per_second":5000000.0,"records_per_second":null,'
    '"at":"2026-03-01T09:30:00.125+00:00","by":"operator@host-7","reason":"night"}'
)


def limit(topics: str, **limits: float) -> LimitOrder:
    """Return a limit on these topics."""
    return LimitOrder(
        topics=topics, limit=Limit(**limits), at=AT, by="operator@host-7", reason="night"
    )


def limited(*orders: LimitOrder) -> DesiredState:
    """Return the state after these limits, the oldest first."""
    state = NOTHING_ORDERED
    for one in orders:
        state = state.after(one.key, one.encode().encode())
    return state


def test_a_limit_is_the_text_that_the_documentation_shows() -> None:
    """It is no order about what should become of topics."""
    one = limit("orders.*", bytes_per_s=5e6)
    assert (one.key, one.encode()) == ("limit:orders.*", LIMIT)
    assert limited(one).limits == {one.key: one}
    assert limited(one).orders == {}
    assert decode_order(one.key, LIMIT.encode()) is None
    assert str(one) == "5,000,000 bytes/s since 2026-03-01 09:30:00 UTC by operator@host-7: night"


def test_a_topic_has_its_newest_limit_and_shares_that_of_the_flow() -> None:
    """A limit without a value lifts an earlier one, and so does a tombstone."""
    flow, orders = limit(".*", records_per_s=9), limit("orders.*", records_per_s=1)
    state = limited(flow, orders, limit("orders-2"))
    assert state.limited({"orders-2", "orders", "audit"}) == {None: flow, "orders": orders}
    assert state.after(flow.key, None).limited({"orders"}) == {"orders": orders}
    assert limited(flow, limit(".*")).limited({"orders"}) == {}


@pytest.mark.parametrize(
    "value",
    [
        LIMIT.replace("5000000.0", "0"),
        LIMIT.replace("5000000.0", '"5"'),
        LIMIT.replace("5000000.0", "true"),
        LIMIT.replace("2026", "in 2026"),
    ],
    ids=["zero", "text", "truth", "no time"],
)
def test_a_damaged_limit_is_an_error(value: str) -> None:
    """The limits from before stay."""
    with pytest.raises(ValueError, match="not a"):
        NOTHING_ORDERED.after("limit:orders", value.encode())
    later = LIMIT.replace('"version":1', '"version":2').encode()
    assert NOTHING_ORDERED.after("limit:orders", later) is NOTHING_ORDERED


def test_what_was_done_is_reported_with_the_offset_that_was_read() -> None:
    """Another version, and a damaged record, say nothing."""
    done = Applied(through=7, partitions=3)
    assert decode_applied(done.encode().encode()) == done
    assert decode_applied(b'{"version":2}') is None
    with pytest.raises(ValueError, match="not a report"):
        decode_applied(b'{"version":1}')


def test_a_request_is_no_order() -> None:
    """It changes nothing that lasts."""
    assert request_of(retry_key("orders.*")) == Request(retries="orders.*")
    assert request_of(RELOAD_KEY) == Request(retries=None)
    assert request_of("topics:orders") is None
    assert NOTHING_ORDERED.after(retry_key("orders"), b"{}") is NOTHING_ORDERED
    with pytest.raises(ValueError, match="not a pattern"):
        request_of(retry_key("("))
