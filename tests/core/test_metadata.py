"""Shadow offset metadata: the text is stable, never too long and never misread."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.metadata import ShadowMetadata, decode, encode
from eos_mirror.core.offset_map import MapTail

TOPIC_ID = "lzCGkSyYQ0aZ0uKq4W1_-A"
CLAIMS_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
INCARNATION = "0123456789abcdef0123456789abcdef"


def _metadata(tail: MapTail) -> ShadowMetadata:
    return ShadowMetadata(
        topic_id=TOPIC_ID,
        claims_topic_id=CLAIMS_TOPIC_ID,
        incarnation=INCARNATION,
        sequence=42,
        tail=tail.encode(),
    )


def _mirrored() -> MapTail:
    tail = MapTail.empty(100)
    tail.add([(100, 3), (105, 2)], 0)
    return tail


START = ShadowMetadata(
    topic_id="", claims_topic_id="", incarnation=INCARNATION, sequence=0, tail=bytes([1] + 6 * [0])
)
GOLDEN = [
    (START, "em1:::0123456789abcdef0123456789abcdef:0:AQAAAAAAAA"),
    (
        _metadata(_mirrored()),
        "em1:lzCGkSyYQ0aZ0uKq4W1_-A:AAAAAAAAAAAAAAAAAAAAAQ"
        ":0123456789abcdef0123456789abcdef:42:AQABZAACAAADAgACAA",
    ),
]


@pytest.mark.parametrize(("metadata", "text"), GOLDEN)
def test_the_text_is_stable(metadata: ShadowMetadata, text: str) -> None:
    """The text does not change, so that a new release reads what the old one committed."""
    assert encode(metadata) == text
    assert decode(text) == metadata


def test_a_trailing_nul_is_ignored() -> None:
    """A trailing NUL is ignored, because some clients return the terminator of a C string."""
    assert decode(GOLDEN[1][1] + "\0") == GOLDEN[1][0]


TOPIC_IDS = st.just("") | st.from_regex(r"[A-Za-z0-9_-]{22}", fullmatch=True)


@given(
    st.builds(
        ShadowMetadata,
        topic_id=TOPIC_IDS,
        claims_topic_id=TOPIC_IDS,
        incarnation=st.uuids(version=4).map(lambda value: value.hex),
        sequence=st.integers(0, 2**63 - 1),
        tail=st.builds(MapTail.empty, st.integers(0, 2**62)).map(MapTail.encode),
    )
)
def test_every_metadata_is_read_back(metadata: ShadowMetadata) -> None:
    """Encoding loses nothing."""
    assert decode(encode(metadata)) == metadata


@given(
    st.integers(0, 2**61),
    st.lists(st.tuples(st.integers(0, 2**53), st.integers(1, 2**53), st.integers(0, 2**53))),
)
def test_a_tail_that_needs_no_spill_always_fits(
    start: int, transactions: list[tuple[int, int, int]]
) -> None:
    """With any gaps, the metadata stays within 1 KiB if the tail is spilled when needed."""
    tail = MapTail.empty(start, segment=2**62)
    # the list may be short; repeated often enough, it fills any tail
    for upstream_gap, length, downstream_gap in transactions * 20:
        first_downstream = (tail.downstream_end or 2**61) + downstream_gap
        tail.add([(tail.upstream_end + upstream_gap, length)], first_downstream)
        if tail.needs_spill():
            tail.spill()
        metadata = ShadowMetadata(
            topic_id=TOPIC_ID,
            claims_topic_id=CLAIMS_TOPIC_ID,
            incarnation=uuid.UUID(int=0).hex,
            sequence=2**63 - 1,
            tail=tail.encode(),
        )
        assert len(encode(metadata)) <= 1024


def test_a_tail_that_should_have_been_spilled_is_refused() -> None:
    """Metadata that is too long is refused before it is sent to the broker."""
    tail = MapTail.empty(0)
    tail.add([(2 * index, 1) for index in range(1000)], 0)
    assert tail.needs_spill()

    with pytest.raises(ValueError, match="characters, more than 1024"):
        encode(_metadata(tail))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not written by eos_mirror: ''"),
        ("consumer metadata of an application", "not written by eos_mirror"),
        ("em2:whatever", "written by a newer eos_mirror: 'em2:"),
        ("em10:whatever", "written by a newer eos_mirror"),
        ("em1:", "malformed field"),
        (GOLDEN[0][1] + ":", "malformed field"),
        (GOLDEN[0][1] + "\0\0", "malformed field"),
        (GOLDEN[0][1] + "\n", "malformed field"),
        (GOLDEN[0][1].replace(":0:", ":00:"), "malformed field"),
        (GOLDEN[0][1].replace(":0:", ":-1:"), "malformed field"),
        (GOLDEN[0][1].replace(":0:", ":\u0660:"), "malformed field"),
        (GOLDEN[0][1].replace("abcdef", "ABCDEF"), "malformed field"),
        (GOLDEN[1][1].replace("lzCG", "lzC"), "malformed field"),
        (GOLDEN[0][1] + "A" * 1000, "characters, more than 1024"),
        (GOLDEN[0][1] + "AAA", "damaged offset map"),
        (GOLDEN[0][1][:-1] + "B", "damaged offset map: stray bits"),
        (GOLDEN[0][1].replace("AQAA", "AwAA"), "offset map format 3"),
        (GOLDEN[0][1][:-2], "offset map is cut off"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text: str, reason: str) -> None:
    """A position that another client or a newer release committed is never accepted as ours."""
    with pytest.raises(ValueError, match=reason):
        decode(text)


@given(st.text(max_size=80) | st.text(max_size=80).map(lambda text: "em1:" + text))
def test_random_text_is_refused(text: str) -> None:
    """Foreign metadata raises ValueError and nothing else."""
    with pytest.raises(ValueError, match="shadow metadata"):
        decode(text)


@given(st.data())
def test_a_damaged_character_never_decodes_to_the_same(data: st.DataObject) -> None:
    """Each metadata has exactly one text."""
    text = GOLDEN[1][1]
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = (
        text[:at] + data.draw(st.characters(min_codepoint=32, max_codepoint=126)) + text[at + 1 :]
    )
    try:
        read = decode(damaged)
    except ValueError:
        return
    assert encode(read) == damaged
