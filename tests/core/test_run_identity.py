"""A run writes who it is into a client id, and everybody can read it there."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from eos_mirror.core.run_identity import RunIdentity, decode_identity

RUN = RunIdentity(
    started_at=datetime(2026, 11, 27, 9, 30, 1, 250_000, tzinfo=UTC),
    host="mirror-1",
    pid=77,
    version="0.1.0",
    fingerprint="0a1b2c3d",
)


@pytest.mark.parametrize("prefix", ["eos-mirror.A.B", "team|eos-mirror.A.B"])
def test_an_identity_survives_a_client_id(prefix: str) -> None:
    """A user may put a prefix of his own before it."""
    assert decode_identity(f"{prefix}|{RUN.encode()}") == RUN


def test_older_runs_come_first_in_the_order_of_their_texts() -> None:
    """A broker prefers the member whose id comes first."""
    younger = replace(RUN, started_at=RUN.started_at + timedelta(milliseconds=1), host="a")
    assert sorted([younger.encode(), RUN.encode()]) == [RUN.encode(), younger.encode()]


@pytest.mark.parametrize(
    "client_id",
    [
        "rdkafka",
        "eos-mirror.A.B|driver|",
        "eos-mirror.A.B|driver|yesterday|h|1|v|f",
        "eos-mirror.A.B|driver|2026-11-27T09:30:01.250+00:00|h|one|v|f",
        "eos-mirror.A.B|driver|2026-11-27T09:30:01.250+00:00|h|1|v",
    ],
)
def test_another_text_is_no_identity(client_id: str) -> None:
    """It is the member of another program, or of another release."""
    assert decode_identity(client_id) is None
