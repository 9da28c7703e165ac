"""A record's clusters are noted in order, and a record that would come back is skipped."""

from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import DecodedRun, Headers, RecordRun, TopicPartition
from eos_mirror.replication.provenance import HEADER, Provenance

OTHERS: Headers = [("trace", b"1"), ("trace", None)]
A_TO_B = Provenance(Flow("A", "B"))


def run_of(*headers: Headers | None) -> DecodedRun:
    """Return one record for each argument, at every other offset."""
    count = len(headers)
    return DecodedRun(
        partition=TopicPartition("orders", 0),
        offsets=range(10, 10 + 2 * count, 2),
        timestamps=range(count),
        keys=[b"k%d" % i for i in range(count)],
        values=[None if i % 3 == 2 else b"v%d" % i for i in range(count)],
        headers=headers,
        leader_epoch=7,
        size_bytes=sum(len(b"v%d" % i) for i in range(count) if i % 3 != 2),
    )


def test_the_source_is_noted_behind_what_was_passed_before() -> None:
    """The source is appended to the path, and other headers keep their values and order."""
    onward = A_TO_B.onward(run_of(None, OTHERS, [(HEADER, b"D,C"), *OTHERS]))

    assert onward is not None
    assert onward.headers == [
        [(HEADER, b"A")],
        [*OTHERS, (HEADER, b"A")],
        [*OTHERS, (HEADER, b"D,C,A")],
    ]


def test_what_passed_the_target_is_left_out() -> None:
    """A record that passed the target is skipped; the other columns and the size still match."""
    run = run_of([(HEADER, b"B")], None, [(HEADER, b"C,B")], [(HEADER, b"BB")])
    onward = A_TO_B.onward(run)

    assert onward is not None
    assert (onward.offsets, onward.timestamps) == ([12, 16], [1, 3])
    assert (onward.keys, onward.values) == ([b"k1", b"k3"], [b"v1", b"v3"])
    assert onward.headers == [[(HEADER, b"A")], [(HEADER, b"BB,A")]]
    assert (onward.size_bytes, onward.leader_epoch) == (4, 7)
    assert A_TO_B.onward(run_of([(HEADER, b"B")])) is None


@given(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=12))
def test_no_record_is_where_it_was_before(way: list[str]) -> None:
    """A record visits each cluster at most once, whichever flows it meets."""
    visited = ["A"]
    run: RecordRun | None = run_of(None)
    for target in way:
        if run is not None and target != visited[-1]:
            onward = Provenance(Flow(visited[-1], target)).onward(run)
            if onward is None:
                assert target in visited
            else:
                run = onward
                visited.append(target)
    assert len(visited) == len(set(visited))
