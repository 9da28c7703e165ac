"""Transaction boundaries: each limit ends a transaction, nothing else does."""

from typing import Any

import pytest

from eos_mirror.core.boundary import Boundary

BOUNDARY = Boundary(interval_s=0.1, max_bytes=1000, max_records=10, every_poll=False)
YOUNG: dict[str, Any] = {
    "opened_at": 50.0,
    "now": 50.05,
    "size_bytes": 999,
    "records": 9,
    "queue_empty": False,
}


def test_a_transaction_within_its_limits_goes_on() -> None:
    """Just below every limit, with more to read, nothing is committed."""
    assert not BOUNDARY.due(**YOUNG)


@pytest.mark.parametrize(
    "reached",
    [{"now": 50.2}, {"size_bytes": 1000}, {"records": 10}, {"queue_empty": True}],
    ids=lambda reached: next(iter(reached)),
)
def test_each_limit_alone_ends_a_transaction(reached: dict[str, Any]) -> None:
    """Age, size, count or an empty queue: one is enough."""
    assert BOUNDARY.due(**YOUNG | reached)


def test_a_transaction_ends_after_each_poll_if_so_configured() -> None:
    """`transaction.boundary=poll` needs no other reason."""
    each = Boundary(interval_s=0.1, max_bytes=1000, max_records=10, every_poll=True)

    assert each.due(**YOUNG)


def test_an_empty_transaction_is_never_due() -> None:
    """Idle partitions cause no commits."""
    each = Boundary(interval_s=0.0, max_bytes=0, max_records=0, every_poll=True)

    assert not each.due(**YOUNG | {"records": 0, "size_bytes": 0, "now": 99.0, "queue_empty": True})
