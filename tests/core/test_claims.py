"""Claim arithmetic: which claims are earlier, and which are superseded."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.claims import (
    Claim,
    ClaimRecord,
    earlier_claims,
    parse_claim,
    superseded,
)
from eos_mirror.core.records import TopicPartition

P0 = TopicPartition("A.orders", 0)
P1 = TopicPartition("A.orders", 1)
P2 = TopicPartition("A.users", 0)


def _claim(remote: TopicPartition, transactional_id: str, sequence: int = 0) -> Claim:
    return Claim(remote=remote, transactional_id=transactional_id, sequence=sequence)


def _log(*claims: Claim | None) -> dict[str, ClaimRecord]:
    """Return the live claims of a log; None is a claim that has a tombstone."""
    return {
        claim.key: ClaimRecord(claim=claim, offset=offset)
        for offset, claim in enumerate(claims)
        if claim is not None
    }


CLAIMS = st.builds(
    Claim,
    remote=st.builds(TopicPartition, st.text(), st.integers(0, 10_000)),
    transactional_id=st.text(),
    sequence=st.integers(0),
    slot=st.none() | st.integers(0, 1000),
    host=st.text(),
)


@given(CLAIMS)
def test_a_claim_is_read_back(claim: Claim) -> None:
    """Key and value hold every field of a claim."""
    assert parse_claim(claim.key, claim.value) == claim


@given(CLAIMS, CLAIMS)
def test_keys_tell_claims_apart(one: Claim, other: Claim) -> None:
    """Two claims share a key only if partition, incarnation and sequence are the same."""
    same = (one.remote, one.transactional_id, one.sequence) == (
        other.remote,
        other.transactional_id,
        other.sequence,
    )
    assert (one.key == other.key) is same


def test_the_record_of_a_claim_is_stable() -> None:
    """The bytes of a claim do not change, so a new release reads the claims of the old one."""
    claim = Claim(remote=P0, transactional_id="eos-mirror.A.B.x", sequence=3, slot=1, host="h:1")

    assert claim.key == '["A.orders",0,"eos-mirror.A.B.x",3]'
    assert claim.value == '{"slot":1,"host":"h:1"}'
    assert replace(claim, slot=None).value == '{"slot":-1,"host":"h:1"}'


def test_a_claim_without_the_fields_for_people_is_read() -> None:
    """A claim without slot and host is read: fencing does not need them."""
    claim = parse_claim('["A.orders",0,"x",3]', "{}")

    assert (claim.slot, claim.host) == (None, "")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", "{}"),
        ("{", "{}"),
        ("[]", "{}"),
        ("7", "{}"),
        ('["A.orders",0,"x"]', "{}"),
        ('["A.orders","zero","x",3]', "{}"),
        ('["A.orders",null,"x",3]', "{}"),
        ('["A.orders",0,"x",3]', ""),
        ('["A.orders",0,"x",3]', "[]"),
        ('["A.orders",0,"x",3]', '{"slot":"one"}'),
    ],
)
def test_what_is_no_claim_is_refused(key: str, value: str) -> None:
    """A foreign record in the claims topic is an error, not a claim."""
    with pytest.raises(ValueError, match="not a claim"):
        parse_claim(key, value)


def test_earlier_claims_of_others_on_our_partitions_are_fenced() -> None:
    """Only earlier claims of others on our partitions are fenced, unless they have a tombstone."""
    old = _claim(P0, "old")
    log = _log(old, None, _claim(P2, "old"), _claim(P0, "me"), _claim(P1, "me"), _claim(P1, "new"))

    assert earlier_claims(log, {P0: 3, P1: 4}, "me") == {old.key: old}


def test_every_earlier_claimant_is_fenced() -> None:
    """If a claimant died before it fenced its predecessor, both are fenced."""
    log = _log(_claim(P0, "first"), _claim(P0, "second"), _claim(P0, "me"))

    fenced = earlier_claims(log, {P0: 2}, "me")

    assert {claim.transactional_id for claim in fenced.values()} == {"first", "second"}


def test_a_repeated_claim_of_ours_is_not_fenced() -> None:
    """Our own claim is not fenced when an unacknowledged append is repeated."""
    log = _log(_claim(P0, "me", 0), _claim(P0, "me", 1))

    assert earlier_claims(log, {P0: 1}, "me") == {}


def test_a_later_claim_supersedes_ours_on_its_partition_only() -> None:
    """We lose only the partitions that another client claimed after us."""
    log = _log(_claim(P0, "old"), _claim(P0, "me"), _claim(P1, "me"), _claim(P0, "new"))

    assert superseded(log, {P0: 1, P1: 2}, {"me"}) == {P0}


def test_our_next_incarnation_does_not_supersede_us() -> None:
    """A claim by a later incarnation of our own process does not supersede us."""
    log = _log(_claim(P0, "me-1"), _claim(P0, "me-2"))

    assert superseded(log, {P0: 0}, {"me-1", "me-2"}) == set()


def test_of_two_claimants_exactly_one_stands_down() -> None:
    """Both claimants of a partition see the same winner in the log."""
    log = _log(_claim(P0, "x"), _claim(P0, "y"))

    assert superseded(log, {P0: 0}, {"x"}) == {P0}
    assert superseded(log, {P0: 1}, {"y"}) == set()
    assert set(earlier_claims(log, {P0: 1}, "y")) == {_claim(P0, "x").key}
    assert earlier_claims(log, {P0: 0}, "x") == {}
