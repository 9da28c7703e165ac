"""Transforms change headers or drop records, as Connect's do."""

import pytest

from eos_mirror.core.records import Headers
from eos_mirror.core.transforms import Chain, Predicate, Transform

VALUES: list[bytes | None] = [b"a", None, b"c"]
HEADERS: list[Headers | None] = [[("h", b"1"), ("keep", b"2")], None, [("h", None), ("h", b"3")]]
TOMBSTONE = Predicate(kind="RecordIsTombstone")
WITH_H = Predicate(kind="HasHeaderKey", text="h")
DROP_H = Transform(kind="DropHeaders", headers=("h",))


def kept(*transforms: Transform, topic: str = "A.orders") -> list[tuple[int, object]]:
    """Return the index and the headers of each record that is left of the three above."""
    found = Chain(transforms, remote_topic=topic).kept(VALUES, HEADERS)
    return list(zip(found.indices, found.headers, strict=True))


def test_without_transforms_nothing_changes() -> None:
    """An empty chain need not even be asked."""
    assert Chain((), remote_topic="A.orders").is_empty
    assert kept() == list(enumerate(HEADERS))


def test_a_filter_drops_records_for_which_its_predicate_holds() -> None:
    """With `negate`, it drops the others; without a predicate, all."""
    assert kept(Transform(kind="Filter", predicate=TOMBSTONE)) == [(0, HEADERS[0]), (2, HEADERS[2])]
    assert kept(Transform(kind="Filter", predicate=TOMBSTONE, negated=True)) == [(1, None)]
    assert kept(Transform(kind="Filter", predicate=WITH_H)) == [(1, None)]
    assert kept(Transform(kind="Filter")) == []


def test_headers_are_dropped_by_name() -> None:
    """All of that name; a record without any has none, as before."""
    assert kept(DROP_H) == [(0, [("keep", b"2")]), (1, None), (2, None)]


def test_a_header_is_inserted_behind_the_others() -> None:
    """Also if one of that name exists."""
    insert = Transform(kind="InsertHeader", headers=("h",), value="x")
    assert [headers for _, headers in kept(insert)] == [
        [("h", b"1"), ("keep", b"2"), ("h", b"x")],
        [("h", b"x")],
        [("h", None), ("h", b"3"), ("h", b"x")],
    ]


def test_a_transform_sees_what_the_one_before_it_left() -> None:
    """The order counts."""
    drop = Transform(kind="Filter", predicate=WITH_H)
    assert len(kept(DROP_H, drop)) == 3
    assert len(kept(drop, DROP_H)) == 1


@pytest.mark.parametrize(
    ("topic", "negated", "is_empty"),
    [
        ("A.orders", False, False),
        ("A.orders", True, True),
        ("A.orders2", False, True),
        ("orders", False, True),
    ],
)
def test_a_topic_is_matched_by_its_remote_name(topic: str, negated: bool, is_empty: bool) -> None:
    """As a whole. A topic that no transform concerns is mirrored as without any."""
    matches = Predicate(kind="TopicNameMatches", text=r"A\.orders")
    one = Transform(kind="Filter", predicate=matches, negated=negated)
    assert Chain([one], remote_topic=topic).is_empty is is_empty
